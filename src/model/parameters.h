#pragma once
// What the weights of a model are called, how large they are and what they are for. Optimizers,
// checkpoints and initialisation read the role; nothing guesses from a shape.

#include <cstdint>
#include <string>
#include <vector>

#include "core/arena.h"
#include "model/config.h"

namespace zaya {

enum class Role {
  matrix,         // a hidden matrix, or several laid end to end
  router_matrix,  // the router's projections: small, and everything downstream hangs on them
  embedding,      // embedding table and head
  vector,         // norms, scales, biases, temperatures
  conv,           // the convolutions' filters
  router_bias,    // balancing biases: chosen by load, not by the loss
};

std::string_view name_of(Role role);

struct ParameterSpec {
  std::string name;  // HF's name, as in model.safetensors
  Shape shape;
  Role role = Role::vector;
  int64_t matrix_rows = 0;  // rows of each logical matrix inside (0 where it is none)
  bool per_expert = false;  // the first dimension counts experts
  float init_mean = 0;
  float init_deviation = 0;
};

// In a fixed order: embedding, blocks, final norm, head.
std::vector<ParameterSpec> parameter_specs(const ModelConfig& config);

struct Parameter {
  ParameterSpec spec;
  Tensor weight;    // f32 master
  Tensor compute;   // what products read: the master itself, or its bf16 copy
  Tensor gradient;  // f32; null data when the model only runs
};

enum class Gradients { none, allocate };

// All parameters of a model, masters and gradients each in one contiguous piece of memory.
class Parameters {
 public:
  // compute: f32, or bf16 for matrices and embeddings (vectors, convolutions and the router stay
  // f32).
  Parameters(const ModelConfig& config, DType compute, Gradients gradients);

  std::vector<Parameter>& all() { return all_; }
  const std::vector<Parameter>& all() const { return all_; }
  // Throws Error when there is none of that name.
  Parameter& find(const std::string& name);

  // Every gradient (every master) as one flat tensor; the few elements between parameters are zero.
  Tensor flat_gradients() const { return flat_gradients_; }
  Tensor flat_weights() const { return flat_weights_; }

  // Draws the start values: a pure function of the seed and the parameter's name.
  void initialize(Context& ctx, uint64_t seed);
  // Copies masters into the bf16 compute copies, after an update or a load.
  void refresh_compute(Context& ctx);

  // Bytes that such a set takes.
  static int64_t bytes(const ModelConfig& config, DType compute, Gradients gradients);

 private:
  std::vector<Parameter> all_;
  Arena weights_, gradients_, compute_;
  Tensor flat_weights_, flat_gradients_;
};

}  // namespace zaya
