#include "core/hash.h"

#include <xxhash.h>

#include <new>

#include "core/error.h"

namespace zaya {
namespace {
XXH3_state_t* state_of(void* state) { return static_cast<XXH3_state_t*>(state); }
}  // namespace

uint64_t xxh3(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

void Xxh3::Free::operator()(void* state) const { XXH3_freeState(state_of(state)); }

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  reset();
}

void Xxh3::reset() { XXH3_64bits_reset(state_of(state_.get())); }

void Xxh3::update(const void* data, size_t bytes) {
  if (bytes > 0) XXH3_64bits_update(state_of(state_.get()), data, bytes);
}

uint64_t Xxh3::digest() const { return XXH3_64bits_digest(state_of(state_.get())); }

std::string to_hex(uint64_t value) { return fmt::format("{:016x}", value); }

uint64_t from_hex(std::string_view text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    fail("wanted 16 hexadecimal digits, got \"{}\"", text);
  return std::stoull(std::string(text), nullptr, 16);
}

}  // namespace zaya
