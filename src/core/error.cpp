#include "core/error.h"

#include <cerrno>
#include <cstring>

namespace zaya {

void fail_errno(std::string_view what, std::string_view path) {
  const int code = errno;
  fail("{} {}: {}", what, path, std::strerror(code));
}

void contract_failed(const char* expression, const char* file, int line) {
  throw ContractError(fmt::format("{}:{}: contract broken: {}", file, line, expression));
}

}  // namespace zaya
