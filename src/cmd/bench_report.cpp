#include "cmd/bench_report.h"

#include "backend/cpu/instruction_set.h"
#include "backend/cpu/threads.h"
#include "train/plan_text.h"
#include "train/precision.h"

namespace zaya {
namespace {

constexpr double kGiga = 1e9;

std::string heading(const BenchSetting& setting) {
  const int threads = thread_count();
  return fmt::format("recipe       {}\ndtype        {}\nmachine      {}, {} thread{}\n",
                     setting.recipe_text, setting.dtype_text, instruction_set(), threads,
                     threads == 1 ? "" : "s");
}

// What both benchmarks say of the machine and of what ran on it.
Json setting_json(const BenchSetting& setting, DType multiplied, double peak,
                  double memory_bandwidth) {
  return {{"recipe", setting.recipe.name},
          {"dtype", precision_name(setting.step.compute)},
          {"multiplied_as", precision_name(multiplied)},
          {"instruction_set", instruction_set()},
          {"threads", thread_count()},
          {"tokens", setting.step.tokens},
          {"peak_gflops", peak / kGiga},
          {"memory_bandwidth_gbytes", memory_bandwidth / kGiga}};
}

std::string product_row(const MeasuredProduct& p, double peak) {
  const auto speed = [&](double rate) {
    return fmt::format("{:>14.1f} {:>4.0f}%", rate / kGiga, 100 * rate / peak);
  };
  return fmt::format("{:<24}{:>6}{:>7}{:>6}{}{}{}\n", p.shape.name, p.shape.m, p.shape.n, p.shape.k,
                     speed(p.speed.forward), speed(p.speed.input_gradient),
                     speed(p.speed.weight_gradient));
}

Json product_json(const MeasuredProduct& p, double peak) {
  const auto speed = [&](double rate) {
    return Json{{"gflops", rate / kGiga}, {"fraction_of_peak", rate / peak}};
  };
  return {{"name", p.shape.name},
          {"m", p.shape.m},
          {"n", p.shape.n},
          {"k", p.shape.k},
          {"forward", speed(p.speed.forward)},
          {"input_gradient", speed(p.speed.input_gradient)},
          {"weight_gradient", speed(p.speed.weight_gradient)}};
}

// Operations a second; groups without products have none.
double rate(const OpGroupSpeed& group) {
  return group.seconds > 0 ? group.flops / group.seconds : 0;
}

std::string speed_row(std::string_view name, const OpGroupSpeed& group, const StepSpeed& whole) {
  std::string row = fmt::format("{:<20}{:>9.1f}{:>8.1f}%", name, 1e3 * group.seconds,
                                100 * group.seconds / whole.forward_backward_seconds);
  if (group.flops == 0) return row + "\n";
  return row + fmt::format("{:>12.1f}{:>9.1f}%\n", rate(group) / kGiga,
                           100 * rate(group) / whole.peak_flops);
}

std::string speed_table(const StepSpeed& s) {
  std::string text =
      fmt::format("\n{:<20}{:>9}{:>9}{:>12}{:>10}\n", "group", "ms", "share", "GFLOP/s", "of peak");
  for (size_t g = 0; g < kOpGroups; ++g)
    text += speed_row(name_of(static_cast<OpGroup>(g)), s.groups[g], s);
  text += speed_row("forward + backward", {s.forward_backward_seconds, s.flops}, s);
  return text + fmt::format("{:<20}{:>9.1f}\n", "optimizer", 1e3 * s.optimizer_seconds);
}

double microseconds_per_token(const StepSpeed& s, double seconds) {
  return 1e6 * seconds / static_cast<double>(s.tokens);
}

double seconds_without_attention(const StepSpeed& s) {
  return s.forward_backward_seconds - s.groups[static_cast<size_t>(OpGroup::attention)].seconds;
}

std::string memory_text(const StepSpeed& s) {
  const std::string predicted = short_bytes(s.predicted_peak_bytes);
  if (s.peak_bytes == 0)
    return fmt::format("memory       {} predicted; this system does not say how much was held\n",
                       predicted);
  return fmt::format(
      "memory       {} at the most, {} predicted ({:.1f}% of it)\n", short_bytes(s.peak_bytes),
      predicted,
      100 * static_cast<double>(s.predicted_peak_bytes) / static_cast<double>(s.peak_bytes));
}

Json group_json(OpGroup name, const OpGroupSpeed& group, const StepSpeed& whole) {
  return {{"name", name_of(name)},
          {"seconds", group.seconds},
          {"share", group.seconds / whole.forward_backward_seconds},
          {"gflops", rate(group) / kGiga},
          {"fraction_of_peak", rate(group) / whole.peak_flops}};
}

}  // namespace

std::string gemm_text(const BenchSetting& setting, const GemmSpeed& s) {
  std::string text =
      heading(setting) + fmt::format("peak         f32 {:.1f} GFLOP/s", s.f32_peak / kGiga);
  text += s.bf16_peak > 0 ? fmt::format(", bf16 {:.1f} GFLOP/s\n", s.bf16_peak / kGiga)
                          : std::string("; no bf16 instructions\n");
  text += fmt::format("memory       {:.1f} GB/s\n\n", s.memory_bandwidth / kGiga);
  text += fmt::format("GFLOP/s of the products of {} tokens, and % of the {} peak\n",
                      setting.step.tokens, precision_name(s.multiplied));
  text += fmt::format("{:<24}{:>6}{:>7}{:>6}{:>20}{:>20}{:>20}\n", "product", "M", "N", "K",
                      "forward", "input gradient", "weight gradient");
  for (const MeasuredProduct& product : s.products) text += product_row(product, s.peak());
  return text;
}

Json gemm_json(const BenchSetting& setting, const GemmSpeed& s) {
  Json json = setting_json(setting, s.multiplied, s.peak(), s.memory_bandwidth);
  json["f32_peak_gflops"] = s.f32_peak / kGiga;
  json["bf16_peak_gflops"] = s.bf16_peak > 0 ? Json(s.bf16_peak / kGiga) : Json();
  json["products"] = Json::array();
  for (const MeasuredProduct& product : s.products)
    json["products"].push_back(product_json(product, s.peak()));
  return json;
}

std::string step_text(const BenchSetting& setting, const StepSpeed& s) {
  const StepBenchOptions& step = setting.step;
  return heading(setting) +
         fmt::format("ceilings     products {:.1f} GFLOP/s ({}), memory {:.1f} GB/s\n",
                     s.peak_flops / kGiga, precision_name(s.multiplied),
                     s.memory_bandwidth / kGiga) +
         fmt::format("step         {} x {} tokens, median of {} ({:.3g} to {:.3g} s)\n",
                     step.tokens / step.seq_len, step.seq_len, step.repeats, s.fastest_seconds,
                     s.slowest_seconds) +
         speed_table(s) +
         fmt::format("\ntokens/s     {:.0f} forward and backward, {:.0f} with the optimizer\n",
                     s.tokens_per_second(), s.training_tokens_per_second()) +
         fmt::format("per token    {:.1f} us, {:.1f} us without attention\n",
                     microseconds_per_token(s, s.forward_backward_seconds),
                     microseconds_per_token(s, seconds_without_attention(s))) +
         fmt::format(
             "utilisation  {:.1f}% of the products' ceiling, by the model's own {:.1f} "
             "GFLOP a step\n",
             100 * s.utilisation(), s.flops / kGiga) +
         memory_text(s);
}

Json step_json(const BenchSetting& setting, const StepSpeed& s) {
  Json json = setting_json(setting, s.multiplied, s.peak_flops, s.memory_bandwidth);
  json["seq_len"] = setting.step.seq_len;
  json["repeats"] = setting.step.repeats;
  json["forward_backward_seconds"] = s.forward_backward_seconds;
  json["fastest_seconds"] = s.fastest_seconds;
  json["slowest_seconds"] = s.slowest_seconds;
  json["optimizer_seconds"] = s.optimizer_seconds;
  json["tokens_per_second"] = s.tokens_per_second();
  json["training_tokens_per_second"] = s.training_tokens_per_second();
  json["microseconds_per_token"] = microseconds_per_token(s, s.forward_backward_seconds);
  json["microseconds_per_token_without_attention"] =
      microseconds_per_token(s, seconds_without_attention(s));
  json["model_gflop"] = s.flops / kGiga;
  json["utilisation"] = s.utilisation();
  json["predicted_peak_bytes"] = s.predicted_peak_bytes;
  json["peak_bytes"] = s.peak_bytes > 0 ? Json(s.peak_bytes) : Json();
  json["groups"] = Json::array();
  for (size_t g = 0; g < kOpGroups; ++g)
    json["groups"].push_back(group_json(static_cast<OpGroup>(g), s.groups[g], s));
  return json;
}

}  // namespace zaya
