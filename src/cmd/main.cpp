#include <fmt/format.h>

#include <cstdio>
#include <new>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "cmd/commands.h"
#include "core/error.h"

int main(int argc, char** argv) {
  using namespace zaya;
  CLI::App app{
      "zaya trains, resumes, evaluates and runs ZAYA1-class mixture-of-experts language models."};
  app.name("zaya");
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("zaya {} ({})", ZAYA_VERSION, instruction_set()));
  app.footer("Start with ./quickstart.sh, or: zaya train recipes/quickstart.toml --help");
  app.add_option_function<int>(
         "--threads", [](int count) { set_thread_count(count); },
         "threads to compute with (default: every core, or OMP_NUM_THREADS)")
      ->check(CLI::Range(1, 1024));

  add_train_command(app);
  add_generate_command(app);
  add_tokenizer_command(app);
  add_pack_command(app);
  add_parity_command(app);
  add_inspect_command(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  } catch (const Verdict& verdict) {
    return verdict.status;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "zaya: out of memory: a smaller batch, context or model would fit\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "zaya: {}\n", error.what());
  }
  return 1;
}
