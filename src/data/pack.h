#pragma once
// Text files to a token store.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/text_reader.h"
#include "data/tokenizer.h"

namespace zaya {

struct PackOptions {
  TextOptions text = {};
  bool bos = true;  // before each document
  bool eos = true;  // after each document
};

struct PackSummary {
  int64_t documents = 0;
  int64_t tokens = 0;  // bos and eos included
  int64_t bytes = 0;   // of the documents' text
};

struct PackProgress {
  int64_t bytes_read = 0;  // of the stored files
  int64_t total_bytes = 0;
  PackSummary so_far;
};

// Documents are tokenised on every core and written in order. Error when the tokenizer lacks the
// bos or eos that the options want, and when the inputs hold no document.
PackSummary pack(const std::vector<std::string>& inputs, const Tokenizer& tokenizer,
                 const std::string& prefix, const PackOptions& options,
                 const std::function<void(const PackProgress&)>& progress);

}  // namespace zaya
