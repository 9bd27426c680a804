#include <limits>

#include "ops/router/choose_expert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/router/choose_expert_cpu.cpp"
#include <hwy/foreach_target.h>
// foreach_target must come first
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "backend/cpu/threads.h"
#include "backend/cpu/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zaya {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kRows = 128;  // rows an item computes
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// s = softmax(z). A NaN or +infinity among the logits makes the whole row NaN: the loss shows it.
void softmax_row(float* s, const float* z, int64_t K) {
  float largest = -kInfinity;
  for (int64_t k = 0; k < K; ++k) largest = z[k] > largest ? z[k] : largest;
  for_each_vector(K, [&](auto d, int64_t k) HWY_ATTR {
    const auto x = hn::Sub(load(d, z + k), hn::Set(d, largest));
    // Highway's Exp answers 0 for NaN.
    store(hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x)), d, s + k);
  });
  const float sum = reduce_sum(K, [&](auto d, int64_t k) HWY_ATTR { return load(d, s + k); });
  for_each_vector(K, [&](auto d, int64_t k)
                         HWY_ATTR { store(hn::Div(load(d, s + k), hn::Set(d, sum)), d, s + k); });
}

// NaN never wins; when everything is NaN the answer is 0, still a valid class.
int32_t argmax_biased(const float* s, const float* bias, int64_t K) {
  float best = -kInfinity;
  int32_t choice = 0;
  for (int64_t k = 0; k < K; ++k) {
    const float score = s[k] + bias[k];
    if (score > best) {
      best = score;
      choice = static_cast<int32_t>(k);
    }
  }
  return choice;
}

void forward(const Tensor& probabilities, const Tensor& choice, const Tensor& gate,
             const Tensor& logits, const Tensor& balancing_bias) {
  const int64_t K = logits.columns();
  const float* bias = balancing_bias.as<float>();
  int32_t* choices = choice.as<int32_t>();
  float* gates = gate.as<float>();
  parallel_ranges(logits.rows(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* s = probabilities.row<float>(t);
      softmax_row(s, logits.row<float>(t), K);
      choices[t] = argmax_biased(s, bias, K);
      gates[t] = s[choices[t]];
    }
  });
}

void backward(const Tensor& dlogits, const Tensor& dgate, const Tensor& probabilities,
              const Tensor& choice) {
  const int64_t K = dlogits.columns();
  const float* dgates = dgate.as<float>();
  const int32_t* choices = choice.as<int32_t>();
  parallel_ranges(dlogits.rows(), kRows, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      ZAYA_REQUIRE(0 <= choices[t] && choices[t] < K);
      const float* s = probabilities.row<float>(t);
      float* dz = dlogits.row<float>(t);
      const float gate = s[choices[t]];
      const float weight = dgates[t] * gate;
      for_each_vector(K, [&](auto d, int64_t k) HWY_ATTR {
        store(hn::Mul(hn::Set(d, -weight), load(d, s + k)), d, dz + k);
      });
      dz[choices[t]] = weight * (1 - gate);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace zaya
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace zaya {
namespace {
HWY_EXPORT(forward);
HWY_EXPORT(backward);

void require_shapes(const Tensor& rows_TK, const Tensor& choice, const Tensor& gate) {
  ZAYA_REQUIRE(rows_TK.contiguous() && rows_TK.columns() > 0);
  ZAYA_REQUIRE(choice.size() == rows_TK.rows() && choice.contiguous());
  ZAYA_REQUIRE(gate.size() == rows_TK.rows() && gate.contiguous());
}
}  // namespace

void choose_expert_forward(Context&, const Tensor& probabilities, const Tensor& choice,
                           const Tensor& gate, const Tensor& logits, const Tensor& balancing_bias) {
  require_shapes(logits, choice, gate);
  ZAYA_REQUIRE(probabilities.shape == logits.shape && probabilities.contiguous());
  ZAYA_REQUIRE(balancing_bias.size() == logits.columns() && balancing_bias.contiguous());
  HWY_DYNAMIC_DISPATCH(forward)(probabilities, choice, gate, logits, balancing_bias);
}

void choose_expert_backward(Context&, const Tensor& dlogits, const Tensor& dgate,
                            const Tensor& probabilities, const Tensor& choice) {
  require_shapes(dlogits, choice, dgate);
  ZAYA_REQUIRE(probabilities.shape == dlogits.shape && probabilities.contiguous());
  HWY_DYNAMIC_DISPATCH(backward)(dlogits, dgate, probabilities, choice);
}

void count_choices(Context&, const Tensor& counts, const Tensor& choice) {
  ZAYA_REQUIRE(counts.contiguous() && choice.contiguous());
  int64_t* total = counts.as<int64_t>();
  const int32_t* choices = choice.as<int32_t>();
  for (int64_t t = 0; t < choice.size(); ++t) {
    ZAYA_REQUIRE(0 <= choices[t] && choices[t] < counts.size());
    ++total[choices[t]];
  }
}

}  // namespace zaya
#endif  // HWY_ONCE
