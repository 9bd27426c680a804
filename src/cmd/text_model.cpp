#include "cmd/text_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include "checkpoint/locate.h"
#include "cmd/progress.h"
#include "plan/memory_use.h"

namespace zaya {

void add_model_flags(CLI::App& command, TextModelFlags& flags) {
  command.add_option("--model", flags.model, "model folder, checkpoint or run")->required();
  command.add_option("--tokenizer", flags.tokenizer,
                     "tokenizer, where the model's folder holds none");
  command
      .add_option("--dtype", flags.dtype,
                  "format of activations; auto: f32 for weights in f32, bf16 for others")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}))
      ->capture_default_str();
}

TextModel open_text_model(const TextModelFlags& flags) {
  TextModel model;
  model.folder = locate_model(flags.model);
  model.tokenizer =
      open_tokenizer(flags.tokenizer.empty() ? model.folder.string() : flags.tokenizer);
  model.generation = read_generation_config(model.folder);
  model.tokenizer_config = read_tokenizer_config(model.folder);
  model.special =
      special_ids(model.generation, model.tokenizer_config, *model.tokenizer, model.folder);
  return model;
}

Zaya load_weights(Context& ctx, const TextModelFlags& flags, const TextModel& model) {
  OpenOptions options;
  if (flags.dtype != "auto") options.compute = flags.dtype == "bf16" ? DType::bf16 : DType::f32;
  return open_model(ctx, model.folder, options);
}

double rate(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

void TextFigures::add(const Generation& done) {
  prompt_tokens += done.prompt_tokens;
  new_tokens += done.new_tokens;
  decode_steps += done.decode_steps;
  prompt_seconds += done.prompt_seconds;
  decode_seconds += done.decode_seconds;
}

void print_figures(const TextFigures& f, const std::string& note) {
  if (!isatty(STDERR_FILENO)) return;
  fmt::print(stderr,
             "[{} prompt tokens at {:.4g}/s, {} new tokens at {:.4g}/s, {} of memory{}{}]\n",
             f.prompt_tokens, rate(f.prompt_tokens, f.prompt_seconds), f.new_tokens,
             rate(f.decode_steps, f.decode_seconds),
             bytes_text(static_cast<double>(peak_memory_bytes())), note.empty() ? "" : ", ", note);
}

}  // namespace zaya
