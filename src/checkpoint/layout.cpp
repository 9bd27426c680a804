#include "checkpoint/layout.h"

#include <array>
#include <charconv>

namespace zaya {
namespace {

// The beginning of a name inside its block, in the current and in the original layout.
struct Renaming {
  std::string_view current, original;
};

constexpr auto kAttentionLayer = std::to_array<Renaming>({
    {"input_layernorm.", "input_norm."},
    {"self_attn.qkv_proj.q_proj.", "self_attn.qkv.linear_q."},
    {"self_attn.qkv_proj.k_proj.", "self_attn.qkv.linear_k."},
    {"self_attn.qkv_proj.v_proj_current.", "self_attn.qkv.val_proj1."},
    {"self_attn.qkv_proj.v_proj_delayed.", "self_attn.qkv.val_proj2."},
    {"self_attn.qkv_proj.conv_qk_depthwise.", "self_attn.qkv.conv_qk.0."},
    {"self_attn.qkv_proj.conv_qk_grouped.", "self_attn.qkv.conv_qk.1."},
    {"self_attn.qk_norm.", "self_attn.qkv."},
    {"self_attn.o_proj.", "self_attn.o_proj."},
});

// A merge stands at the start of the layer after it: that of the attention sublayer here, and that
// of the whole block (kBlockMerge) in the next block's attention layer.
constexpr auto kExpertsLayer = std::to_array<Renaming>({
    {"post_attention_layernorm.", "input_norm."},
    {"post_attention_residual_scale.", "res_scale."},
    {"mlp.gate.router_mlp.norm.", "zaya_block.router.rmsnorm_eda."},
    {"mlp.gate.router_mlp.fc1.", "zaya_block.router.router_mlp.0."},
    {"mlp.gate.router_mlp.fc2.", "zaya_block.router.router_mlp.2."},
    {"mlp.gate.router_mlp.out_proj.", "zaya_block.router.router_mlp.4."},
    {"mlp.gate.", "zaya_block.router."},
});
constexpr std::string_view kBlockMerge = "post_mlp_residual_scale.";

constexpr auto kOutsideBlocks = std::to_array<Renaming>({
    {"model.input_", "model.layers.0.res_scale."},
    {"model.norm.", "model.final_norm."},
});

constexpr std::string_view kBlocks = "model.layers.";

// The name with its beginning exchanged; empty where none of the renamings fits.
template <size_t N>
std::string renamed(std::string_view name, const std::array<Renaming, N>& renamings) {
  for (const Renaming& r : renamings)
    if (name.starts_with(r.current))
      return std::string(r.original) + std::string(name.substr(r.current.size()));
  return {};
}

std::string layer_name(int64_t layer, std::string_view rest) {
  return fmt::format("{}{}.{}", kBlocks, layer, rest);
}

// "model.layers.12.mlp.experts.down_proj": block 12, and the name inside it.
struct BlockName {
  int64_t block = 0;
  std::string_view inside;
};

BlockName split_block_name(std::string_view name) {
  BlockName split;
  const std::string_view rest = name.substr(kBlocks.size());
  const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), split.block);
  split.inside = rest.substr(static_cast<size_t>(end.ptr - rest.data()) + 1);
  return split;
}

std::string original_name(std::string_view name, const ModelConfig& config) {
  if (!name.starts_with(kBlocks)) {
    const std::string other = renamed(name, kOutsideBlocks);
    return other.empty() ? std::string(name) : other;
  }
  const auto [block, inside] = split_block_name(name);
  if (inside.starts_with(kBlockMerge)) {
    const std::string rest = "res_scale." + std::string(inside.substr(kBlockMerge.size()));
    const bool last = block + 1 == config.num_hidden_layers;
    return last ? "model." + rest : layer_name(2 * block + 2, rest);
  }
  if (const std::string rest = renamed(inside, kAttentionLayer); !rest.empty())
    return layer_name(2 * block, rest);
  const std::string rest = renamed(inside, kExpertsLayer);
  ZAYA_REQUIRE(!rest.empty());
  return layer_name(2 * block + 1, rest);
}

std::vector<StoredTensor> original_experts(const ParameterSpec& spec) {
  const auto [block, inside] = split_block_name(spec.name);
  const bool gate_up = inside == "mlp.experts.gate_up_proj";
  ZAYA_REQUIRE(gate_up || inside == "mlp.experts.down_proj");
  std::vector<StoredTensor> tensors;
  for (int64_t expert = 0; expert < spec.shape[0]; ++expert)
    tensors.push_back(
        {layer_name(2 * block + 1, fmt::format("zaya_block.experts.local_experts.{}.linear_fc{}."
                                               "weight",
                                               expert, gate_up ? 1 : 2)),
         {spec.shape[1], spec.shape[2]}});
  return tensors;
}

Shape with_columns(const Shape& shape, int64_t columns) {
  Shape other;
  for (int i = 0; i + 1 < shape.rank(); ++i) other.append(shape[i]);
  other.append(columns);
  return other;
}

int64_t columns_of(const Shape& shape) { return shape[shape.rank() - 1]; }

}  // namespace

std::string_view name_of(Layout layout) {
  return layout == Layout::current ? "current" : "original";
}

std::string text_of(const StoredForm& form) {
  return fmt::format("{} layout{}", name_of(form.layout),
                     form.bits == 0 ? "" : fmt::format(", int{}", form.bits));
}

std::vector<StoredTensor> stored_tensors(const ParameterSpec& spec, const ModelConfig& config,
                                         Layout layout) {
  if (layout == Layout::current) return {{spec.name, spec.shape}};
  if (spec.per_expert) return original_experts(spec);
  return {{original_name(spec.name, config), spec.shape}};
}

DType codes_dtype(int bits) {
  ZAYA_REQUIRE(bits == 8 || bits == 4);
  return bits == 8 ? DType::i8 : DType::u8;
}

StoredTensor codes_of(const StoredTensor& plain, int bits) {
  return {plain.name, with_columns(plain.shape, columns_of(plain.shape) * bits / 8)};
}

StoredTensor scales_of(const StoredTensor& plain) {
  return {plain.name + ".scales", with_columns(plain.shape, columns_of(plain.shape) / kQuantGroup)};
}

bool stored_as_codes(const ParameterSpec& spec, const StoredForm& form) {
  return form.bits != 0 && is_product_weight(spec.role) && quantizable(columns_of(spec.shape));
}

}  // namespace zaya
