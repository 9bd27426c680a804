#include "eval/parity.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "eval/parity_tolerance.h"
#include "infer/decoder.h"
#include "ops/loss/cross_entropy.h"

namespace zaya {
namespace {

// The reference's tokens as one flat batch.
struct ReferenceBatch {
  std::vector<int32_t> ids, labels, cu_seqlens;
  int64_t label_count = 0;
};

std::vector<int32_t> read_integers(const SafetensorsFile& file, const char* name, int64_t low,
                                   int64_t high) {
  const Tensor tensor = file.get(name);
  if (tensor.dtype != DType::i64)
    fail("{}: {}: wanted I64, got {}", file.path().string(), name, name_of(tensor.dtype));
  std::vector<int32_t> values;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t value = tensor.as<int64_t>()[i];
    if ((value < low || value >= high) && value != kIgnoredLabel)
      fail("{}: {}[{}]: wanted {} to {}, got {}", file.path().string(), name, i, low, high - 1,
           value);
    values.push_back(static_cast<int32_t>(value));
  }
  return values;
}

ReferenceBatch read_batch(const SafetensorsFile& file, int64_t vocab_size) {
  const std::string place = file.path().string();
  const Shape shape = file.get("input_ids").shape;
  if (shape.rank() != 2 || shape.size() == 0)
    fail("{}: input_ids: wanted shape [B, S], got {}", place, shape.to_string());
  ReferenceBatch batch;
  batch.ids = read_integers(file, "input_ids", 0, vocab_size);
  if (std::count(batch.ids.begin(), batch.ids.end(), kIgnoredLabel) > 0)
    fail("{}: input_ids: wanted ids from 0, got {}", place, kIgnoredLabel);
  batch.labels = read_integers(file, "labels", 0, vocab_size);
  if (file.get("labels").shape != shape)
    fail("{}: labels: wanted shape {}, got {}", place, shape.to_string(),
         file.get("labels").shape.to_string());
  if (file.find("cu_seqlens")) {
    if (shape[0] != 1)
      fail("{}: cu_seqlens: wanted one row of input_ids beside it, got {}", place, shape[0]);
    batch.cu_seqlens = read_integers(file, "cu_seqlens", 0, shape.size() + 1);
    if (batch.cu_seqlens.size() < 2 || batch.cu_seqlens.front() != 0 ||
        batch.cu_seqlens.back() != shape.size() ||
        !std::is_sorted(batch.cu_seqlens.begin(), batch.cu_seqlens.end()))
      fail("{}: cu_seqlens: wanted offsets rising from 0 to {}", place, shape.size());
  } else {
    for (int64_t s = 0; s <= shape[0]; ++s)
      batch.cu_seqlens.push_back(static_cast<int32_t>(s * shape[1]));
  }
  batch.label_count = std::count_if(batch.labels.begin(), batch.labels.end(),
                                    [](int32_t label) { return label != kIgnoredLabel; });
  return batch;
}

double frobenius_error(const float* got, const float* wanted, int64_t n) {
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(wanted[i]);
    difference += d * d;
    norm += static_cast<double>(wanted[i]) * static_cast<double>(wanted[i]);
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

class Comparison {
 public:
  Comparison(const SafetensorsFile& file, ParityReport& report) : file_(file), report_(report) {}

  // Compares with the file's tensor of that name, if it has one.
  void compare(const std::string& name, const Tensor& got, double tolerance) {
    const Tensor* wanted = find(name);
    if (!wanted) return;
    if (wanted->dtype != DType::f32 || wanted->size() != got.size())
      fail("{}: {}: wanted F32 with {} elements, got {} {}", file_.path().string(), name,
           got.size(), name_of(wanted->dtype), wanted->shape.to_string());
    report_.rows.push_back({name, wanted->shape,
                            frobenius_error(got.as<float>(), wanted->as<float>(), got.size()),
                            tolerance, ""});
  }

  // Share of tokens that chose another expert.
  void compare_choices(const Activations& activations, double tolerance) {
    const Tensor* wanted = find("expert_choice");
    if (!wanted) return;
    const int64_t T = activations.x.rows();
    const auto blocks = static_cast<int64_t>(activations.blocks.size());
    if (wanted->dtype != DType::i64 || wanted->size() != blocks * T)
      fail("{}: expert_choice: wanted I64 with {} elements, got {} {}", file_.path().string(),
           blocks * T, name_of(wanted->dtype), wanted->shape.to_string());
    int64_t different = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      const int32_t* got = activations.blocks[block].experts.router.choice.as<int32_t>();
      for (int64_t t = 0; t < T; ++t) different += got[t] != wanted->as<int64_t>()[block * T + t];
    }
    report_.rows.push_back({"expert_choice", wanted->shape,
                            static_cast<double>(different) / static_cast<double>(blocks * T),
                            tolerance, "share of choices that differ"});
  }

  // Error when the file holds a tensor that nothing was compared with: it is of another model.
  void require_all_compared() const {
    for (const std::string& name : file_.names())
      if (!seen_.contains(name))
        fail("{}: holds {}, which this model does not compute", file_.path().string(),
             json_quoted(name));
  }

 private:
  const Tensor* find(const std::string& name) {
    seen_.insert(name);
    return file_.find(name);
  }

  const SafetensorsFile& file_;
  ParityReport& report_;
  std::set<std::string> seen_{"input_ids", "labels", "cu_seqlens"};
};

// Passes each sequence's tokens one by one through the caches, as prompts or as tokens that were
// generated, and compares with the full forward's logits.
enum class PassedAs { prompt, generated };
double cached_error(Context& ctx, Zaya& model, const ReferenceBatch& batch, const Tensor& full,
                    PassedAs passed_as) {
  const Ragged ragged{batch.cu_seqlens};
  int64_t longest = 1;
  for (int64_t s = 0; s < ragged.count(); ++s) longest = std::max(longest, ragged.length(s));
  Decoder decoder(model, 1, longest, 1);
  std::vector<float> decoded(static_cast<size_t>(full.size()));
  const int64_t V = full.columns();
  for (int64_t s = 0; s < ragged.count(); ++s) {
    decoder.reset(0);
    for (int64_t t = ragged.begin(s); t < ragged.end(s); ++t) {
      const Decoder::Piece next{0, std::span(batch.ids).subspan(t, 1)};
      const Tensor logits = passed_as == PassedAs::prompt ? decoder.feed(ctx, {&next, 1})
                                                          : decoder.step(ctx, {&next, 1});
      std::copy_n(logits.as<float>(), V, decoded.data() + t * V);
    }
  }
  return frobenius_error(decoded.data(), full.as<float>(), full.size());
}

// The sum of the losses; and where the model has gradients, those of the mean.
double run_model(Context& ctx, Zaya& model, const TokenBatch& tokens, double count) {
  const Tensor gradients = model.parameters().flat_gradients();
  if (gradients) {
    std::fill_n(gradients.as<float>(), gradients.size(), 0.0f);
    return model.forward_backward(ctx, tokens, static_cast<float>(1 / count));
  }
  model.forward(ctx, tokens);
  return model.losses(ctx, tokens);
}

}  // namespace

bool has_gradients(const SafetensorsFile& reference) {
  return std::any_of(reference.names().begin(), reference.names().end(),
                     [](const std::string& name) { return name.starts_with("grad."); });
}

bool ParityReport::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const ParityRow& row) { return row.passed(); });
}

const ParityRow& ParityReport::worst() const {
  ZAYA_REQUIRE(!rows.empty());
  const auto excess = [](const ParityRow& row) {
    if (std::isnan(row.error)) return std::numeric_limits<double>::infinity();
    return row.tolerance > 0 ? row.error / row.tolerance : (row.error > 0 ? 1e300 : 0.0);
  };
  return *std::max_element(rows.begin(), rows.end(),
                           [&](const auto& a, const auto& b) { return excess(a) < excess(b); });
}

ParityReport check_parity(Context& ctx, Zaya& model, const SafetensorsFile& reference) {
  const ParityTolerance tolerance = parity_tolerance(model.compute());
  const ReferenceBatch batch = read_batch(reference, model.config().vocab_size);
  ParityReport report;
  Comparison comparison(reference, report);

  TokenBatch tokens;
  tokens.set(batch.ids, batch.labels, batch.cu_seqlens);
  const double count = static_cast<double>(std::max<int64_t>(batch.label_count, 1));
  const double sum = run_model(ctx, model, tokens, count);
  float loss = static_cast<float>(sum / count);
  std::vector<float> logits(static_cast<size_t>(tokens.tokens() * model.config().vocab_size));
  const Tensor all_logits(logits.data(), DType::f32, {tokens.tokens(), model.config().vocab_size});
  model.logits(ctx, all_logits, 0);

  comparison.compare("logits", all_logits, tolerance.forward);
  comparison.compare("loss", Tensor(&loss, DType::f32, {1}), tolerance.forward);
  comparison.compare_choices(model.activations(), tolerance.choices);
  for (size_t block = 0; block < model.activations().blocks.size(); ++block)
    comparison.compare(fmt::format("hidden.{}", block), model.activations().blocks[block].out,
                       tolerance.forward);
  for (const Parameter& p : model.parameters().all())
    if (p.gradient) comparison.compare("grad." + p.spec.name, p.gradient, tolerance.gradient);
  comparison.require_all_compared();
  report.rows.push_back({"cached_prompt", all_logits.shape,
                         cached_error(ctx, model, batch, all_logits, PassedAs::prompt),
                         tolerance.cached_prompt,
                         "token by token through the caches, against the full forward"});
  report.rows.push_back({"cached_decoding", all_logits.shape,
                         cached_error(ctx, model, batch, all_logits, PassedAs::generated),
                         tolerance.cached, "the same by the kernels of generated tokens"});
  return report;
}

}  // namespace zaya
