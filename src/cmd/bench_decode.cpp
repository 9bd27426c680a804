#include "cmd/bench_decode.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "checkpoint/model_file.h"
#include "cmd/watched.h"
#include "cmd/yardstick.h"
#include "core/json.h"
#include "plan/decode_bench.h"
#include "plan/memory_use.h"
#include "plan/step_bench.h"
#include "train/plan_text.h"
#include "train/precision.h"
#include "train/recipe.h"

namespace zaya {
namespace {

constexpr double kGiga = 1e9;
constexpr const char* kGeometry = "zaya1-8b";

struct Options {
  std::string geometry = kGeometry;
  std::string dtype = "int4";
  int64_t blocks = 0;  // 0: all, or as many as fit
  int64_t prompt = 512;
  int64_t tokens = 32;
  bool json = false;
};

// What was measured, and how many blocks of how many.
struct Setting {
  DecodeBenchOptions bench;
  int64_t all_blocks = 0;
  std::string note;  // why fewer blocks, if nobody asked for them
};

ModelConfig geometry_of(const std::string& name) {
  if (name == kGeometry) return parse_recipe(kZaya1Recipe, kZaya1RecipeName, {}).model;
  const std::filesystem::path path(name);
  return read_model_file(std::filesystem::is_directory(path) ? path / "config.json" : path).config;
}

WeightFormat format_of(const std::string& name) {
  if (name == "int8") return WeightFormat::int8;
  if (name == "int4") return WeightFormat::int4;
  return name == "bf16" ? WeightFormat::bf16 : WeightFormat::f32;
}

void keep_blocks(ModelConfig& model, int64_t blocks) {
  model.num_hidden_layers = blocks;
  if (!model.sliding_layers.empty()) model.sliding_layers.resize(static_cast<size_t>(blocks));
}

Setting setting_of(const Options& o) {
  Setting setting;
  DecodeBenchOptions& bench = setting.bench;
  bench.model = geometry_of(o.geometry);
  bench.weights = format_of(o.dtype);
  bench.compute = bench.weights == WeightFormat::f32 ? DType::f32 : DType::bf16;
  bench.prompt_tokens = o.prompt;
  bench.new_tokens = o.tokens;
  setting.all_blocks = bench.model.num_hidden_layers;
  if (o.blocks > setting.all_blocks)
    throw CLI::ValidationError("--blocks",
                               fmt::format("wanted 1 to {}, got {}", setting.all_blocks, o.blocks));
  if (o.blocks > 0) {
    keep_blocks(bench.model, o.blocks);
  } else {
    const int64_t available = available_memory_bytes();
    const int64_t fit = available > 0 ? blocks_that_fit(bench, available) : setting.all_blocks;
    if (fit > 0 && fit < setting.all_blocks)
      setting.note = fmt::format("{} of the {} blocks: all of them take {}, and {} are free", fit,
                                 setting.all_blocks, short_bytes(predicted_decode_bytes(bench)),
                                 short_bytes(available));
    if (fit > 0) keep_blocks(bench.model, fit);
  }
  require_memory("decoding with random weights", predicted_decode_bytes(bench));
  return setting;
}

std::string group_rows(const DecodeSpeed& s) {
  std::string text = fmt::format("\n{:<20}{:>9}{:>9}\n", "group", "ms", "share");
  for (size_t g = 0; g < kOpGroups; ++g)
    text += fmt::format("{:<20}{:>9.2f}{:>8.1f}%\n", name_of(static_cast<OpGroup>(g)),
                        1e3 * s.groups[g], 100 * s.groups[g] / s.step_seconds);
  return text + fmt::format("{:<20}{:>9.2f}{:>8.1f}%\n", "a token", 1e3 * s.step_seconds, 100.0);
}

std::string decode_text(const Options& o, const Setting& setting, const DecodeSpeed& s) {
  const DecodeBenchOptions& bench = setting.bench;
  std::string text = fmt::format("model        {}, random weights, {} of {} blocks\n", o.geometry,
                                 bench.model.num_hidden_layers, setting.all_blocks);
  if (!setting.note.empty()) text += fmt::format("             {}\n", setting.note);
  text += fmt::format("weights      {} in {}; a token reads {}, of them the head {}\n",
                      short_bytes(s.weight_bytes), o.dtype, short_bytes(s.active_bytes),
                      short_bytes(s.head_bytes));
  text += fmt::format("caches       {} read by a token after {}\n", short_bytes(s.cache_bytes),
                      o.prompt + o.tokens / 2);
  text += fmt::format("machine      {}, {} threads\n", instruction_set(), thread_count());
  text += fmt::format("ceilings     reading {:.1f} GB/s, products {:.1f} GFLOP/s ({})\n",
                      s.read_bandwidth / kGiga, s.peak_flops / kGiga, precision_name(s.multiplied));
  text += group_rows(s);
  text += fmt::format(
      "\ndecoding     {:.2f} tokens/s, median of {} ({:.3g} to {:.3g} ms): "
      "{:.1f}% of the roofline\n",
      s.tokens_per_second(), o.tokens, 1e3 * s.fastest_seconds, 1e3 * s.slowest_seconds,
      100 * s.roofline_fraction());
  text += fmt::format(
      "prompt       {} tokens in {:.3g} s, {:.0f} tokens/s: {:.1f}% of the "
      "products' peak\n",
      o.prompt, s.prompt_seconds, static_cast<double>(o.prompt) / s.prompt_seconds,
      100 * s.prefill_utilisation());
  return text + (s.peak_bytes > 0
                     ? fmt::format("memory       {} at the most\n", short_bytes(s.peak_bytes))
                     : std::string("memory       this system does not say how much was held\n"));
}

Json decode_json(const Options& o, const Setting& setting, const DecodeSpeed& s) {
  Json groups = Json::array();
  for (size_t g = 0; g < kOpGroups; ++g)
    groups.push_back({{"name", name_of(static_cast<OpGroup>(g))}, {"seconds", s.groups[g]}});
  return {{"geometry", o.geometry},
          {"dtype", o.dtype},
          {"blocks", setting.bench.model.num_hidden_layers},
          {"all_blocks", setting.all_blocks},
          {"instruction_set", instruction_set()},
          {"threads", thread_count()},
          {"tokens_per_second", s.tokens_per_second()},
          {"roofline_fraction", s.roofline_fraction()},
          {"prefill_utilisation", s.prefill_utilisation()},
          {"peak_bytes", s.peak_bytes > 0 ? Json(s.peak_bytes) : Json()},
          {"read_bandwidth_gbytes", s.read_bandwidth / kGiga},
          {"peak_gflops", s.peak_flops / kGiga},
          {"weight_bytes", s.weight_bytes},
          {"active_bytes", s.active_bytes},
          {"head_bytes", s.head_bytes},
          {"cache_bytes", s.cache_bytes},
          {"new_tokens", o.tokens},
          {"step_seconds", s.step_seconds},
          {"fastest_seconds", s.fastest_seconds},
          {"slowest_seconds", s.slowest_seconds},
          {"prompt_tokens", o.prompt},
          {"prompt_seconds", s.prompt_seconds},
          {"prompt_gflop", s.prompt_flops / kGiga},
          {"groups", groups}};
}

void run(const Options& options) {
  const Setting setting = setting_of(options);
  const DecodeSpeed speed = watched(
      [&](const BenchProgress& progress) { return measure_decode(setting.bench, progress); });
  fmt::print("{}", options.json ? json_text(decode_json(options, setting, speed)) + "\n"
                                : decode_text(options, setting, speed));
}

}  // namespace

void add_decode_bench(CLI::App& parent) {
  auto options = std::make_shared<Options>();
  CLI::App* command = parent.add_subcommand(
      "decode",
      "Generating a text token by token with random weights, beside the memory's bandwidth, and "
      "its prompt, beside the peak of products.");
  command
      ->add_option("--geometry", options->geometry,
                   "zaya1-8b, or a model folder or config.json whose shape to take")
      ->capture_default_str();
  command->add_option("--dtype", options->dtype, "how weights are held: f32, bf16, int8 or int4")
      ->check(CLI::IsMember({"f32", "bf16", "int8", "int4"}))
      ->capture_default_str();
  command
      ->add_option("--blocks", options->blocks,
                   "the first blocks only (default: all, or as many as fit in memory)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command->add_option("--prompt", options->prompt, "tokens of the prompt")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--tokens", options->tokens, "tokens to generate")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  command
      ->add_option_function<int>(
          "--threads", [](int count) { set_thread_count(count); },
          "threads to compute with (default: every core)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", options->json, "print one JSON object");
  command->footer(
      "Reads no weights and writes nothing; filling the memory takes some seconds.\n"
      "Example: zaya bench decode --geometry zaya1-8b --dtype int4");
  command->callback([options] { run(*options); });
}

}  // namespace zaya
