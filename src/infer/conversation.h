#pragma once
// A conversation with a model. What was said stays in the decoder's caches: a turn costs its own
// tokens only.

#include "core/error.h"
#include "infer/chat_format.h"
#include "infer/generate.h"
#include "infer/prefill.h"

namespace zaya {

struct Message {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

// What was said does not fit the context any more.
class DoesNotFit : public Error {
 public:
  using Error::Error;
};

class Conversation {
 public:
  // Errors of check_belongs. The model and the tokenizer must outlive the conversation.
  Conversation(Context& ctx, const Zaya& model, const Tokenizer& tokenizer, ChatFormat format,
               const GenerateOptions& options);

  // Forgets what was said, and starts anew under this system text (empty: none).
  void reset(std::string system);
  const std::string& system() const { return system_; }
  // Starts anew with what others said: at first perhaps a system text, then user and assistant in
  // turns, assistant last. An Error that begins with `place` otherwise, or where it does not fit
  // the context, and nothing has changed.
  void load(const std::vector<Message>& messages, const std::string& place);
  // The system text, if any, and what was said.
  std::vector<Message> messages() const;

  // Says `text`, which is not empty, and answers. Whatever ends the answer, the next turn goes on
  // after it. DoesNotFit when the text does not fit the context, and nothing has changed.
  Generation say(std::string_view text, const std::function<void(std::string_view)>& on_text,
                 const std::function<bool()>& interrupted);

  int64_t length() const { return static_cast<int64_t>(ids_.size()); }
  int64_t longest() const { return longest_; }

 private:
  void append(const std::vector<int32_t>& ids);
  std::vector<int32_t> turn_of(std::string_view text) const;
  void write_answer(Generation& result, Writer& writer, Tensor logits,
                    const std::function<void(std::string_view)>& on_text,
                    const std::function<bool()>& interrupted);

  Context& ctx_;
  const Tokenizer& tokenizer_;
  ChatFormat format_;
  GenerateOptions options_;
  int64_t longest_;  // the model's longest sequence
  Decoder decoder_;
  TokenSampler sampler_;
  std::string system_;
  std::vector<Message> messages_;  // without the system text
  // The conversation as tokens; the decoder has read the first length(0) of them.
  std::vector<int32_t> ids_;
};

}  // namespace zaya
