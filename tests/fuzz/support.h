#pragma once
// What the fuzz programs share. A parser either accepts its input or throws an Error that can be
// shown to a person; any other exception ends the program, which libFuzzer reports as a crash.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "data/utf8.h"

// Like assert, but never compiled out.
#define FUZZ_CHECK(expression) \
  ((expression) ? void(0) : ::zaya::fuzz::check_failed(#expression, __FILE__, __LINE__, ""))
#define FUZZ_CHECK_TEXT(expression, text) \
  ((expression) ? void(0) : ::zaya::fuzz::check_failed(#expression, __FILE__, __LINE__, text))

namespace zaya::fuzz {

[[noreturn]] inline void check_failed(const char* expression, const char* file, int line,
                                      const std::string& text) {
  std::fprintf(stderr, "%s:%d: check failed: %s %s\n", file, line, expression, text.c_str());
  std::abort();
}

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Messages repeat names out of files. They must not carry escape sequences to a terminal.
inline void check_printable(const std::string& message) {
  FUZZ_CHECK_TEXT(is_utf8(message), message);
  for (const char c : message)
    FUZZ_CHECK_TEXT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, message);
}

// Runs a parser. False: it refused its input. More than ten seconds of this process's time are a
// failure; libFuzzer's own clock goes on while a busy machine does something else.
template <class Parse>
bool accepts(Parse parse) {
  const std::clock_t start = std::clock();
  bool accepted = true;
  try {
    parse();
  } catch (const Error& error) {
    check_printable(error.what());
    accepted = false;
  }
  FUZZ_CHECK(std::clock() - start < 10 * CLOCKS_PER_SEC);
  return accepted;
}

// A file that is overwritten for every input, which is faster than a new one.
class InputFileOnDisk {
 public:
  explicit InputFileOnDisk(const fs::path& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
    FUZZ_CHECK(file_.get() >= 0);
  }
  void set(std::string_view bytes) {
    const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), 0);
    FUZZ_CHECK(written == static_cast<ssize_t>(bytes.size()));
    FUZZ_CHECK(::ftruncate(file_.get(), written) == 0);
  }

 private:
  FileDescriptor file_;
};

}  // namespace zaya::fuzz
