#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "cmd/commands.h"
#include "core/error.h"

namespace zaya {
namespace {

// A program started without standard input, output or error would get their numbers for the files
// it opens, and print into them.
void fill_standard_streams() {
  int fd = -1;
  do fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) ::close(fd);
}

// Output may be lost as late as here (a full disk). A reader that has left is no error.
void finish_output() {
  if (std::fflush(stdout) != 0 && errno != EPIPE) fail_errno("cannot write to", "standard output");
}

// CLI11 says of a word that is no subcommand only that one is missing.
std::string usage_text(const CLI::App* app, const CLI::Error& error) {
  std::string text = error.what();
  if (text.starts_with("A subcommand")) {
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    const std::vector<std::string> words = app->remaining();
    std::vector<std::string> names;
    for (const CLI::App* command : app->get_subcommands({})) names.push_back(command->get_name());
    text = fmt::format("wanted one of {}, got {}", fmt::join(names, ", "),
                       words.empty() ? "nothing" : fmt::format("\"{}\"", words[0]));
  }
  return fmt::format("zaya: {}\nRun with --help for more information.\n", text);
}

}  // namespace
}  // namespace zaya

int main(int argc, char** argv) {
  using namespace zaya;
  fill_standard_streams();
  set_thread_count(0);            // OMP_NUM_THREADS, but no more than there are cores
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error with a message, not a signal
  CLI::App app{
      "zaya trains, resumes, evaluates and runs ZAYA1-class mixture-of-experts language models."};
  app.name("zaya");
  app.require_subcommand(1);
  app.failure_message(usage_text);
  // Before the version, which tells what it leaves.
  app.add_flag_callback("--avx2", leave_avx512_unused,
                        "use no AVX-512: gives the bits of a machine that has none, to go on with "
                        "its run or to repeat it");
  app.set_version_flag("--version",
                       [] { return fmt::format("zaya {} ({})", ZAYA_VERSION, instruction_set()); });
  app.footer("Start with ./quickstart.sh, or: zaya train recipes/quickstart.toml --help");
  app.add_option_function<int>(
         "--threads", [](int count) { set_thread_count(count); },
         "threads to compute with (default: every core, or OMP_NUM_THREADS)")
      ->check(CLI::Range(1, 1024));

  add_train_command(app);
  add_generate_command(app);
  add_chat_command(app);
  add_tokenizer_command(app);
  add_pack_command(app);
  add_eval_command(app);
  add_parity_command(app);
  add_inspect_command(app);
  add_convert_command(app);
  add_bench_command(app);
  try {
    app.parse(argc, argv);
    finish_output();
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
