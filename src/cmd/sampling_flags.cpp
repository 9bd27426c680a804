#include "cmd/sampling_flags.h"

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/json.h"

namespace zaya {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 24;

LogitBias parse_bias(const std::string& text) {
  const size_t equals = text.find('=');
  LogitBias bias{};
  const char* const end = text.data() + text.size();
  const auto refuse = [&] {
    fail("--logit-bias: wanted ID=BIAS, such as 13=-2.5 or 13=-inf, got {}", json_quoted(text));
  };
  if (equals == std::string::npos) refuse();
  const auto id = std::from_chars(text.data(), text.data() + equals, bias.id);
  const char* const number = text.data() + equals + 1;
  const auto value = std::from_chars(number, end, bias.bias);
  if (id.ec != std::errc() || id.ptr != text.data() + equals || value.ec != std::errc() ||
      value.ptr != end || std::isnan(bias.bias))
    refuse();
  return bias;
}

SamplingOptions over(const SamplingFlags& flags, SamplingOptions options) {
  const auto take = [](auto& to, const auto& from) {
    if (from) to = *from;
  };
  take(options.temperature, flags.temperature);
  take(options.top_k, flags.top_k);
  take(options.top_p, flags.top_p);
  take(options.min_p, flags.min_p);
  take(options.repetition_penalty, flags.repetition_penalty);
  for (const std::string& text : flags.logit_bias) options.logit_bias.push_back(parse_bias(text));
  options.seed = flags.seed;
  return options;
}

}  // namespace

void add_sampling_flags(CLI::App& command, SamplingFlags& flags, int64_t default_max_tokens) {
  const std::string group = "Sampling (defaults: the model's generation_config.json, or as named)";
  const auto add = [&](const char* name, auto& value, const std::string& help) {
    return command.add_option(name, value, help)->group(group);
  };
  add("--max-tokens", flags.max_tokens,
      fmt::format("tokens to write at most [{}]", default_max_tokens))
      ->check(CLI::Range(int64_t{1}, kMaxTokens));
  add("--temperature", flags.temperature, "0: always the likeliest token [0.8]");
  add("--top-k", flags.top_k, "keep the k likeliest tokens; 0: all [0]");
  add("--top-p", flags.top_p, "keep the likeliest tokens up to this probability [1]");
  add("--min-p", flags.min_p, "keep tokens at least this likely beside the likeliest [0]");
  add("--repetition-penalty", flags.repetition_penalty,
      "above 1: tokens of the prompt and the text are less likely to come again [1]");
  add("--logit-bias", flags.logit_bias, "ID=BIAS, added to a token's logit; -inf forbids it")
      ->type_name("ID=BIAS")
      ->allow_extra_args(false);
  add("--stop", flags.stops, "text to stop before; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  add("--seed", flags.seed, "the same seed gives the same text [0]");
}

void check_flags(const SamplingFlags& flags) {
  check_sampling(over(flags, {}));
  check_stop_strings(flags.stops, "--stop");
}

GenerateOptions generate_options(const SamplingFlags& flags, const GenerationConfig& config,
                                 const SpecialIds& special, const Tokenizer& tokenizer,
                                 int64_t default_max_tokens) {
  GenerateOptions options;
  options.sampling = over(flags, config.sampling());
  for (const LogitBias& bias : options.sampling.logit_bias)
    if (bias.id < 0 || bias.id >= tokenizer.vocab_size())
      fail("--logit-bias: wanted a token id below {}, got {}", tokenizer.vocab_size(), bias.id);
  const int64_t stated = config.max_new_tokens.value_or(default_max_tokens);
  options.write.max_tokens = flags.max_tokens.value_or(std::min(stated, kMaxTokens));
  options.write.stops = flags.stops;
  options.write.ends = special.eos;
  return options;
}

}  // namespace zaya
