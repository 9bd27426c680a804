#include <fmt/format.h>

#include "cmd/chat_session.h"
#include "cmd/commands.h"
#include "cmd/interrupt.h"
#include "core/error.h"

namespace zaya {
namespace {

constexpr int64_t kDefaultMaxTokens = 4096;

struct Options {
  TextModelFlags model;
  std::string system;
  std::string load;
  SamplingFlags sampling;
};

void run(const Options& options) {
  check_flags(options.sampling);
  const TextModel text = open_text_model(options.model);
  const ChatFormat format(*text.tokenizer, text.special, text.folder.string());
  const GenerateOptions generate_with = generate_options(
      options.sampling, text.generation, text.special, *text.tokenizer, kDefaultMaxTokens);
  if (const std::string warning = template_warning(text.tokenizer_config); !warning.empty())
    fmt::print(stderr, "zaya: {}\n", warning);
  std::vector<Message> messages;
  if (!options.load.empty()) messages = read_messages(options.load);
  Context ctx;
  Zaya model = load_weights(ctx, options.model, text);
  Conversation conversation(ctx, model, *text.tokenizer, format, generate_with);
  if (!options.load.empty()) conversation.load(messages, options.load);
  if (!options.system.empty()) conversation.reset(options.system);
  note_interrupts();
  const auto input = make_line_input();
  ChatSession session(conversation, *input);
  session.run();
  print_figures(session.figures());
}

}  // namespace

void add_chat_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("chat", "Talk with a model that was made for conversations.");
  add_model_flags(*command, options->model);
  CLI::Option* const load =
      command->add_option("--load", options->load, "go on with a conversation that /save wrote");
  command->add_option("--system", options->system, "text that the conversation is under")
      ->excludes(load);
  add_sampling_flags(*command, options->sampling, kDefaultMaxTokens);
  command->footer("Example: zaya chat --model models/zaya1 --system \"Answer in one sentence.\"");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
