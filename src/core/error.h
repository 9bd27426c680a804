#pragma once
// Bad input throws Error, naming the place, what was wanted and what came. A programmer's mistake
// (a shape that does not fit an op's contract) stops at ZAYA_REQUIRE with file and line.

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace zaya {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// A failed system call: "what path: strerror(errno)".
[[noreturn]] void fail_errno(std::string_view what, std::string_view path);

class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void contract_failed(const char* expression, const char* file, int line);

}  // namespace zaya

// Checked in every build: a contract broken silently is a wrong gradient found weeks later.
#define ZAYA_REQUIRE(expression) \
  ((expression) ? void(0) : ::zaya::contract_failed(#expression, __FILE__, __LINE__))
