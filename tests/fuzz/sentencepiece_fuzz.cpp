// A SentencePiece tokenizer.model. The last byte of the input says how many bytes before it are no
// part of the model but a text to encode.

#include "fuzz/tokenizer_checks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace zaya::fuzz;
  if (size == 0) return 0;
  const std::string_view input = as_text(data, size - 1);
  const size_t text_bytes = std::min<size_t>(data[size - 1], input.size());
  const std::string model(input.substr(0, input.size() - text_bytes));
  const std::string_view text = input.substr(model.size());
  accepts([&] { check_tokenizer(*zaya::make_sentencepiece_tokenizer(model, "m.model"), text); });
  return 0;
}
