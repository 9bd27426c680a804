#pragma once
// One sequence being written: logits to tokens, tokens to text, until something ends it.

#include <string>
#include <vector>

#include "data/stream_decoder.h"
#include "data/tokenizer.h"
#include "infer/sampler.h"
#include "infer/stop_strings.h"

namespace zaya {

enum class Stopped {
  not_yet,
  eos,          // the model said so
  stop_string,  // the text came to one
  length,       // max_tokens
  context,      // the model's longest sequence
  interrupted,  // by a person
};
// "eos", "stop string", "length" (also for context), "interrupted".
std::string_view name_of(Stopped stopped);

struct WriteOptions {
  int64_t max_tokens = 256;
  std::vector<std::string> stops;  // as check_stop_strings wants them
  std::vector<int32_t> ends;       // a token of these ends the text and is no part of it
};

class Writer {
 public:
  // The tokenizer and the sampler must outlive the writer. room: tokens until the model's longest
  // sequence is full.
  Writer(const Tokenizer& tokenizer, TokenSampler& sampler, const WriteOptions& options,
         int64_t room);

  // Chooses the next token from logits [1, V]. Returns the text that became certain: whole
  // characters, and nothing of a stop string. Not to be called once stopped.
  std::string take(const Tensor& logits);
  // Ends the text. Returns what was still waiting.
  std::string interrupt() { return stop(Stopped::interrupted); }

  Stopped stopped() const { return stopped_; }
  // Tokens chosen, one that ended the text among them.
  int64_t new_tokens() const { return new_tokens_; }
  // The tokens of the text; of a text with a stop string, that string's too.
  const std::vector<int32_t>& ids() const { return ids_; }

 private:
  std::string stop(Stopped reason);

  TokenSampler& sampler_;
  StreamDecoder decoder_;
  StopStrings stops_;
  std::vector<int32_t> ends_;
  int64_t max_tokens_, room_;
  int64_t new_tokens_ = 0;
  std::vector<int32_t> ids_;
  Stopped stopped_ = Stopped::not_yet;
};

}  // namespace zaya
