#include "checkpoint/rotary_config.h"

namespace zaya {
namespace {

Rotary read_entry(const JsonObject& rope, const double* default_factor) {
  if (rope.string_or("rope_type", "default") != "default")
    rope.fail_wanted("rope_type", "\"default\"");
  const char* factor = "partial_rotary_factor";
  return {rope.number("rope_theta"),
          default_factor ? rope.number_or(factor, *default_factor) : rope.number(factor)};
}

}  // namespace

Rotary read_rotary(const JsonObject& config, std::string_view layer_type, bool used,
                   const double* default_factor) {
  if (!config.has("rope_parameters")) return used ? read_entry(config, default_factor) : Rotary{};
  const JsonObject all = config.object("rope_parameters");
  if (all.has("rope_theta")) return read_entry(all, default_factor);
  if (!used && !all.has(layer_type)) return {};
  return read_entry(all.object(layer_type), default_factor);
}

void refuse_rope_scaling(const JsonObject& config) {
  const Json* scaling = config.find("rope_scaling");
  if (scaling && *scaling != Json(false)) config.fail_wanted("rope_scaling", "null or false");
}

}  // namespace zaya
