#pragma once
// What the weights of a model are called, how large they are and what they are for. Optimizers,
// checkpoints and initialisation read the role; nothing guesses from a shape.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/weight.h"
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
  Tensor weight;    // f32 master; null data where a model that only runs reads in place
  Tensor gradient;  // f32; null data when the model does not train
  // What products read, one an expert, or one: of the master itself, of its bf16 copy, or what a
  // model that only runs was given.
  std::vector<Weight> matrices;

  const Weight& matrix() const { return matrices.front(); }
};

enum class Gradients { none, allocate };

// True for what products read in the compute format: matrices and embeddings. Vectors, convolutions
// and the router are f32 always.
bool is_product_weight(Role role);
// True for what a model that only runs reads where it is stored: product weights, and the router's
// projections, whose values are the same in f32.
bool is_read_in_place(Role role);

// All parameters of a model, masters and gradients each in one contiguous piece of memory.
class Parameters {
 public:
  // Of a model that only runs: what is read in place has no masters, and no memory here. Whoever
  // loads it sets its `matrices`, to where they lie already if possible.
  static Parameters to_run(const ModelConfig& config);
  // compute: of product weights, f32 or bf16.
  Parameters(const ModelConfig& config, DType compute, Gradients gradients);

  // Keeps what `matrices` look at (a mapped file, say) as long as this object.
  void keep(std::shared_ptr<const void> storage) { storage_.push_back(std::move(storage)); }

  std::vector<Parameter>& all() { return all_; }
  const std::vector<Parameter>& all() const { return all_; }
  // Throws Error when there is none of that name.
  Parameter& find(const std::string& name);

  // Every gradient (every master) as one flat tensor; the few elements between parameters are zero.
  Tensor flat_gradients() const { return flat_gradients_; }
  Tensor flat_weights() const { return flat_weights_; }

  // Draws the masters' start values: a pure function of the seed and the parameter's name.
  void initialize(Context& ctx, uint64_t seed);
  // Copies masters into the bf16 compute copies, after an update or a load.
  void refresh_compute(Context& ctx);
  // Bytes of all weights, in the formats in which they are held.
  int64_t weight_bytes() const;

  // Bytes that such a set takes.
  static int64_t bytes(const ModelConfig& config, DType compute, Gradients gradients);

 private:
  Parameters() = default;

  std::vector<Parameter> all_;
  std::vector<std::shared_ptr<const void>> storage_;
  Arena weights_, gradients_, compute_;
  Tensor flat_weights_, flat_gradients_;
};

}  // namespace zaya
