#include <algorithm>
#include <cstring>
#include <set>

#include "checkpoint/hf_model.h"
#include "checkpoint/widen.h"

namespace zaya {
namespace {

constexpr size_t kShown = 1000;
constexpr const char* kEmbeddings = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

// Gathers what keeps a folder's tensors from being those of a model, a line each.
class Differences {
 public:
  explicit Differences(const TensorFolder& folder) : folder_(folder) {}

  void look_for_floats(const StoredTensor& wanted) {
    if (const Tensor* found = look_for(wanted)) {
      if (!is_float(found->dtype))
        add("{}: wanted F32, BF16 or F16, got {}", wanted.name, name_of(found->dtype));
      compare_shapes(wanted, *found);
    }
  }

  // Or floats: a matrix may stay what it was.
  void look_for_codes(const StoredTensor& plain, int bits) {
    const Tensor* found = folder_.find(plain.name);
    if (!found || is_float(found->dtype)) return look_for_floats(plain);
    look_for(plain);
    look_for_dtype(codes_of(plain, bits), *found, codes_dtype(bits));
    const StoredTensor scales = scales_of(plain);
    if (const Tensor* found_scales = look_for(scales))
      look_for_dtype(scales, *found_scales, DType::bf16);
  }

  // A tied head may be stored a second time, as long as it is the same.
  void look_for_copy(const char* copy, const char* of) {
    for (const char* suffix : {"", ".scales"}) {
      const std::string name = std::string(copy) + suffix;
      const Tensor* found = folder_.find(name);
      const Tensor* other = folder_.find(std::string(of) + suffix);
      if (!found) continue;
      known_.insert(name);
      if (!other || !same_bytes(*found, *other))
        add("{}: wanted the bytes of {}{} (tie_word_embeddings), got others", name, of, suffix);
    }
  }

  void look_for_strangers() {
    for (const std::string& name : folder_.names())
      if (!known_.contains(name)) add("not part of the model: {}", json_quoted(name));
  }

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  const Tensor* look_for(const StoredTensor& wanted) {
    known_.insert(wanted.name);
    const Tensor* found = folder_.find(wanted.name);
    if (!found) add("missing: {} {}", wanted.name, wanted.shape.to_string());
    return found;
  }

  void look_for_dtype(const StoredTensor& wanted, const Tensor& found, DType dtype) {
    if (found.dtype != dtype)
      add("{}: wanted {}, got {}", wanted.name, name_of(dtype), name_of(found.dtype));
    compare_shapes(wanted, found);
  }

  void compare_shapes(const StoredTensor& wanted, const Tensor& found) {
    if (found.shape != wanted.shape)
      add("{}: wanted shape {}, got {}", wanted.name, wanted.shape.to_string(),
          found.shape.to_string());
  }

  static bool same_bytes(const Tensor& a, const Tensor& b) {
    return a.dtype == b.dtype && a.shape == b.shape &&
           std::memcmp(a.data, b.data, static_cast<size_t>(a.bytes())) == 0;
  }

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  const TensorFolder& folder_;
  std::set<std::string, std::less<>> known_;
  std::vector<std::string> lines_;
};

Layout other_than(Layout layout) {
  return layout == Layout::current ? Layout::original : Layout::current;
}

// A config.json put beside the tensors of the other layout explains every line at once.
std::string layout_hint(const ModelConfig& config, Layout layout, const TensorFolder& folder) {
  const Layout other = other_than(layout);
  for (const ParameterSpec& spec : parameter_specs(config))
    for (const StoredTensor& tensor : stored_tensors(spec, config, other))
      if (!folder.find(tensor.name)) return "";
  return fmt::format(": config.json is of the {} layout, the tensors have the {} one's names",
                     name_of(layout), name_of(other));
}

}  // namespace

void check_tensors(const ModelConfig& config, const StoredForm& form, const TensorFolder& folder) {
  Differences differences(folder);
  for (const ParameterSpec& spec : parameter_specs(config))
    for (const StoredTensor& stored : stored_tensors(spec, config, form.layout))
      if (stored_as_codes(spec, form))
        differences.look_for_codes(stored, form.bits);
      else
        differences.look_for_floats(stored);
  if (config.tie_word_embeddings) differences.look_for_copy(kHead, kEmbeddings);
  differences.look_for_strangers();
  const std::vector<std::string>& lines = differences.lines();
  if (lines.empty()) return;
  std::string text =
      fmt::format("{}: the tensors are not those of its config.json ({} differences){}",
                  folder.path().string(), lines.size(), layout_hint(config, form.layout, folder));
  for (size_t i = 0; i < std::min(lines.size(), kShown); ++i) text += "\n  " + lines[i];
  if (lines.size() > kShown) text += fmt::format("\n  and {} more", lines.size() - kShown);
  throw Error(text);
}

}  // namespace zaya
