#include "model/parameters.h"

#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace zaya {
namespace {

// The start value of the skip slot's balancing bias, as in the released checkpoints: a probability
// minus one never beats another probability, so the slot rests until a recipe wakes it (open).
constexpr float kSkipBias = -1.0f;

class SpecList {
 public:
  explicit SpecList(const ModelConfig& config) : config_(config) {}

  void vector(std::string name, int64_t size, float start) {
    add({std::move(name), {size}, Role::vector, 0, false, start, 0});
  }
  void matrix(std::string name, int64_t rows, int64_t columns, Role role, float deviation) {
    add({std::move(name), {rows, columns}, role, rows, false, 0, deviation});
  }
  void add(ParameterSpec spec) { specs_.push_back(std::move(spec)); }

  // Outputs into the residual stream start smaller, so that its size does not grow with depth.
  float residual_deviation() const {
    return config_.initializer_range /
           std::sqrt(2.0f * static_cast<float>(config_.num_hidden_layers));
  }

  std::vector<ParameterSpec> take() { return std::move(specs_); }

 private:
  const ModelConfig& config_;
  std::vector<ParameterSpec> specs_;
};

void add_attention(SpecList& list, const ModelConfig& c, const std::string& prefix) {
  const int64_t D = c.hidden_size, C = c.qk_channels(), half = c.key_channels() / 2;
  const float deviation = c.initializer_range;
  list.matrix(prefix + "qkv_proj.q_proj.weight", c.query_channels(), D, Role::matrix, deviation);
  list.matrix(prefix + "qkv_proj.k_proj.weight", c.key_channels(), D, Role::matrix, deviation);
  list.matrix(prefix + "qkv_proj.v_proj_current.weight", half, D, Role::matrix, deviation);
  list.matrix(prefix + "qkv_proj.v_proj_delayed.weight", half, D, Role::matrix, deviation);
  // Convolutions start at the scale of a fan-in initialisation (open).
  list.add({prefix + "qkv_proj.conv_qk_depthwise.weight",
            {C, 1, c.cca_time0},
            Role::conv,
            0,
            false,
            0,
            1 / std::sqrt(3.0f * static_cast<float>(c.cca_time0))});
  list.vector(prefix + "qkv_proj.conv_qk_depthwise.bias", C, 0);
  list.add({prefix + "qkv_proj.conv_qk_grouped.weight",
            {C, c.head_dim, c.cca_time1},
            Role::conv,
            0,
            false,
            0,
            1 / std::sqrt(3.0f * static_cast<float>(c.head_dim * c.cca_time1))});
  list.vector(prefix + "qkv_proj.conv_qk_grouped.bias", C, 0);
  // Published constructors say 0, which makes every attention logit 0; from scratch 1 (open).
  list.vector(prefix + "qk_norm.temp", c.num_key_value_heads, 1);
  list.matrix(prefix + "o_proj.weight", D, c.query_channels(), Role::matrix,
              list.residual_deviation());
}

void add_router(SpecList& list, const ModelConfig& c, const std::string& prefix, int64_t block) {
  const int64_t R = c.router_hidden_size;
  const float fan_in = 1 / std::sqrt(static_cast<float>(R));
  list.matrix(prefix + "down_proj.weight", R, c.hidden_size, Role::router_matrix,
              1 / std::sqrt(static_cast<float>(c.hidden_size)));
  list.vector(prefix + "down_proj.bias", R, 0);
  if (block > 0) list.vector(prefix + "router_states_scale", R, 1);
  list.vector(prefix + "router_mlp.norm.weight", R, 1);
  list.matrix(prefix + "router_mlp.fc1.weight", R, R, Role::router_matrix, fan_in);
  list.vector(prefix + "router_mlp.fc1.bias", R, 0);
  list.matrix(prefix + "router_mlp.fc2.weight", R, R, Role::router_matrix, fan_in);
  list.vector(prefix + "router_mlp.fc2.bias", R, 0);
  list.matrix(prefix + "router_mlp.out_proj.weight", c.router_classes(), R, Role::router_matrix,
              fan_in);
  list.add({prefix + "balancing_biases", {c.router_classes()}, Role::router_bias});
}

void add_experts(SpecList& list, const ModelConfig& c, const std::string& prefix) {
  const int64_t E = c.num_experts, D = c.hidden_size, I = c.moe_intermediate_size;
  // gate_up_proj holds each expert's gate rows, then its up rows: two logical matrices of I rows.
  list.add({prefix + "gate_up_proj", {E, 2 * I, D}, Role::matrix, I, true, 0, c.initializer_range});
  list.add({prefix + "down_proj", {E, D, I}, Role::matrix, D, true, 0, list.residual_deviation()});
}

void add_merge(SpecList& list, int64_t D, const std::string& prefix) {
  list.vector(prefix + "hidden_states_bias", D, 0);
  list.vector(prefix + "hidden_states_scale", D, 1);
  list.vector(prefix + "residual_bias", D, 0);
  list.vector(prefix + "residual_scale", D, 1);
}

uint64_t seed_of(uint64_t seed, const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u ^ seed;  // FNV-1a
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

// One an expert, or one.
std::vector<Weight> matrices_of(const ParameterSpec& spec, const Tensor& values) {
  if (spec.per_expert) return stacked_matrices(values);
  return {values};
}

// The whole of a parameter's product weights, which lie one after the other.
Tensor laid_end_to_end(const Parameter& p) {
  return Tensor(p.matrix().values.data, p.matrix().values.dtype, p.spec.shape);
}

Tensor flat(const Arena& arena, const std::vector<Parameter>& all, Tensor Parameter::*which) {
  if (all.empty() || !(all.front().*which)) return {};
  return Tensor((all.front().*which).data, DType::f32,
                {static_cast<int64_t>(arena.used() / sizeof(float))});
}

}  // namespace

bool is_product_weight(Role role) { return role == Role::matrix || role == Role::embedding; }

bool is_read_in_place(Role role) { return is_product_weight(role) || role == Role::router_matrix; }

std::string_view name_of(Role role) {
  switch (role) {
    case Role::matrix:
      return "matrix";
    case Role::router_matrix:
      return "router matrix";
    case Role::embedding:
      return "embedding";
    case Role::vector:
      return "vector";
    case Role::conv:
      return "convolution";
    case Role::router_bias:
      return "router bias";
  }
  return "";
}

std::vector<ParameterSpec> parameter_specs(const ModelConfig& c) {
  SpecList list(c);
  const int64_t D = c.hidden_size;
  list.matrix("model.embed_tokens.weight", c.vocab_size, D, Role::embedding, c.initializer_range);
  list.vector("model.input_hidden_states_bias", D, 0);
  list.vector("model.input_hidden_states_scale", D, 1);
  for (int64_t block = 0; block < c.num_hidden_layers; ++block) {
    const std::string prefix = fmt::format("model.layers.{}.", block);
    list.vector(prefix + "input_layernorm.weight", D, 1);
    add_attention(list, c, prefix + "self_attn.");
    add_merge(list, D, prefix + "post_attention_residual_scale.");
    list.vector(prefix + "post_attention_layernorm.weight", D, 1);
    add_router(list, c, prefix + "mlp.gate.", block);
    add_experts(list, c, prefix + "mlp.experts.");
    add_merge(list, D, prefix + "post_mlp_residual_scale.");
  }
  list.vector("model.norm.weight", D, 1);
  if (!c.tie_word_embeddings)
    list.matrix("lm_head.weight", c.vocab_size, D, Role::embedding, c.initializer_range);
  return list.take();
}

Parameters::Parameters(const ModelConfig& config, DType compute, Gradients gradients) {
  const std::vector<ParameterSpec> specs = parameter_specs(config);
  Arena master_plan, compute_plan;
  for (const ParameterSpec& spec : specs) {
    master_plan.tensor(DType::f32, spec.shape);
    if (is_product_weight(spec.role)) compute_plan.tensor(compute, spec.shape);
  }
  weights_ = Arena(master_plan.peak());
  if (gradients == Gradients::allocate) gradients_ = Arena(master_plan.peak());
  if (compute != DType::f32) compute_ = Arena(compute_plan.peak());
  for (const ParameterSpec& spec : specs) {
    Parameter parameter{spec, weights_.tensor(DType::f32, spec.shape), {}, {}};
    if (gradients == Gradients::allocate)
      parameter.gradient = gradients_.tensor(DType::f32, spec.shape);
    const bool copied = compute != DType::f32 && is_product_weight(spec.role);
    parameter.matrices =
        matrices_of(spec, copied ? compute_.tensor(compute, spec.shape) : parameter.weight);
    all_.push_back(std::move(parameter));
  }
  flat_weights_ = flat(weights_, all_, &Parameter::weight);
  flat_gradients_ = flat(gradients_, all_, &Parameter::gradient);
}

Parameters Parameters::to_run(const ModelConfig& config) {
  Parameters parameters;
  Arena plan;
  const std::vector<ParameterSpec> specs = parameter_specs(config);
  for (const ParameterSpec& spec : specs)
    if (!is_read_in_place(spec.role)) plan.tensor(DType::f32, spec.shape);
  parameters.weights_ = Arena(plan.peak());
  for (const ParameterSpec& spec : specs) {
    Parameter parameter{spec, {}, {}, {}};
    if (!is_read_in_place(spec.role)) {
      parameter.weight = parameters.weights_.tensor(DType::f32, spec.shape);
      parameter.matrices = matrices_of(spec, parameter.weight);
    }
    parameters.all_.push_back(std::move(parameter));
  }
  return parameters;
}

int64_t Parameters::weight_bytes() const {
  int64_t bytes = 0;
  for (const Parameter& p : all_)
    for (const Weight& matrix : p.matrices) bytes += matrix.bytes();
  return bytes;
}

int64_t Parameters::bytes(const ModelConfig& config, DType compute, Gradients gradients) {
  int64_t bytes = 0;
  for (const ParameterSpec& spec : parameter_specs(config)) {
    bytes += 4 * spec.shape.size() * (gradients == Gradients::allocate ? 2 : 1);
    if (compute != DType::f32 && is_product_weight(spec.role)) bytes += 2 * spec.shape.size();
  }
  return bytes;
}

Parameter& Parameters::find(const std::string& name) {
  for (Parameter& parameter : all_)
    if (parameter.spec.name == name) return parameter;
  fail("the model has no parameter \"{}\"", name);
}

void Parameters::initialize(Context& ctx, uint64_t seed) {
  for (Parameter& parameter : all_) {
    const ParameterSpec& spec = parameter.spec;
    if (!parameter.weight) continue;
    fill_normal(ctx, parameter.weight.reshaped({parameter.weight.size()}), seed_of(seed, spec.name),
                spec.init_mean, spec.init_deviation);
    if (spec.role == Role::router_bias) {
      const int64_t classes = parameter.weight.size();
      fill_normal(ctx, parameter.weight.column_range(classes - 1, classes), 0, kSkipBias, 0);
    }
  }
  refresh_compute(ctx);
}

void Parameters::refresh_compute(Context& ctx) {
  for (Parameter& parameter : all_)
    if (parameter.weight && parameter.matrix().values.dtype != DType::f32)
      convert(ctx, laid_end_to_end(parameter), parameter.weight);
}

ParameterCounts count_parameters(const ModelConfig& config) {
  ParameterCounts counts;
  for (const ParameterSpec& spec : parameter_specs(config)) {
    const int64_t size = spec.shape.size();
    counts.total += size;
    if (spec.role == Role::embedding) continue;
    counts.without_embeddings += size;
    counts.active += spec.per_expert ? size / config.num_experts : size;
  }
  return counts;
}

}  // namespace zaya
