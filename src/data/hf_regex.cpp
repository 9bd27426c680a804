#include "data/hf_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/error.h"
#include "core/json.h"

namespace zaya {
namespace {

constexpr size_t kMaxPattern = 16384;
constexpr uint32_t kMatchLimit = 20'000'000;  // steps of one match
constexpr uint32_t kHeapLimit = 65536;        // KiB
constexpr size_t kJitStack = size_t{8} << 20;

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

// What one pass over a text needs of its own.
struct Matcher {
  explicit Matcher(const pcre2_code* code)
      : data(pcre2_match_data_create_from_pattern(code, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(32 << 10, kJitStack, nullptr)) {
    if (!data || !context) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimit);
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
  Owned<pcre2_match_data> data;
  Owned<pcre2_match_context> context;
  Owned<pcre2_jit_stack> stack;
};

}  // namespace

struct Regex::Compiled {
  Owned<pcre2_code> code;
};

Regex::Regex(std::string_view pattern, std::string place) : place_(std::move(place)) {
  if (pattern.empty() || pattern.size() > kMaxPattern)
    fail("{}: wanted a pattern of 1 to {} bytes, got {}", place_, kMaxPattern, pattern.size());
  const std::string text = to_pcre2(pattern, place_);
  const Owned<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  Owned<pcre2_code> code(
      pcre2_compile(units(text), text.size(), options, &error, &offset, context.get()));
  if (!code)
    fail("{}: wanted a regular expression, got {}: {}", place_, json_quoted(pattern),
         message_of(error));
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);  // without it matching is slow, but right
  compiled_ = std::make_shared<const Compiled>(Compiled{std::move(code)});
}

size_t Regex::shortest_match() const {
  uint32_t characters = 0;
  pcre2_pattern_info(compiled_->code.get(), PCRE2_INFO_MINLENGTH, &characters);
  return characters;
}

void Regex::each_match(std::string_view text,
                       const std::function<void(size_t, size_t)>& found) const {
  const Matcher matcher(compiled_->code.get());
  size_t at = 0;
  size_t last_end = std::string_view::npos;
  while (at <= text.size()) {
    const int count = pcre2_match(compiled_->code.get(), units(text), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, matcher.data.get(), matcher.context.get());
    if (count == PCRE2_ERROR_NOMATCH) return;
    if (count < 0) fail("{}: matching a text: {}", place_, message_of(count));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(matcher.data.get());
    const size_t begin = ends[0], end = ends[1];
    if (end > begin || end != last_end) found(begin, end);
    last_end = end;
    at = end;
    if (end > begin) continue;
    if (at == text.size()) return;
    do ++at;  // behind an empty match the next one begins a character further on
    while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80);
  }
}

}  // namespace zaya
