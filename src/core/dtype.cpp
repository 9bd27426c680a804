#include "core/dtype.h"

#include <array>

#include "core/error.h"

namespace zaya {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  size_t size;
};

constexpr std::array kEntries = {
    Entry{DType::f32, "F32", 4},      Entry{DType::bf16, "BF16", 2}, Entry{DType::f16, "F16", 2},
    Entry{DType::f64, "F64", 8},      Entry{DType::i64, "I64", 8},   Entry{DType::i32, "I32", 4},
    Entry{DType::i16, "I16", 2},      Entry{DType::i8, "I8", 1},     Entry{DType::u8, "U8", 1},
    Entry{DType::u16, "U16", 2},      Entry{DType::u32, "U32", 4},   Entry{DType::u64, "U64", 8},
    Entry{DType::boolean, "BOOL", 1},
};

}  // namespace

size_t size_of(DType dtype) { return kEntries[static_cast<size_t>(dtype)].size; }

std::string_view name_of(DType dtype) { return kEntries[static_cast<size_t>(dtype)].name; }

DType dtype_from_name(std::string_view name) {
  for (const Entry& entry : kEntries)
    if (entry.name == name) return entry.dtype;
  fail("unknown tensor type \"{}\"", name);
}

void fail_activation_dtype(DType dtype) {
  throw ContractError(fmt::format("activations are F32 or BF16, got {}", name_of(dtype)));
}

}  // namespace zaya
