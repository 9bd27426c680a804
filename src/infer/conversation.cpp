#include "infer/conversation.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "core/json.h"

namespace zaya {
namespace {

constexpr int64_t kFirstTokens = 1024;  // room at the start
constexpr int64_t kShortestAnswer = 1;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_roles(const std::vector<Message>& messages, const std::string& place) {
  const size_t first = !messages.empty() && messages[0].role == "system" ? 1 : 0;
  for (size_t i = first; i < messages.size(); ++i) {
    const std::string_view wanted = (i - first) % 2 == 0 ? "user" : "assistant";
    if (messages[i].role != wanted)
      fail("{}: messages[{}].role: wanted \"{}\", got {}", place, i, wanted,
           json_quoted(messages[i].role));
  }
  if ((messages.size() - first) % 2 != 0)
    fail("{}: messages: wanted an answer (\"assistant\") at the end", place);
}

}  // namespace

Conversation::Conversation(Context& ctx, const Zaya& model, const Tokenizer& tokenizer,
                           ChatFormat format, const GenerateOptions& options)
    : ctx_(ctx),
      tokenizer_(tokenizer),
      format_(std::move(format)),
      options_(options),
      longest_(model.config().max_position_embeddings),
      decoder_(model, 1, std::min(kFirstTokens, longest_)),
      sampler_(options.sampling, tokenizer.vocab_size()) {
  check_belongs(tokenizer, model.config());
  options_.write.ends = format_.ends();
  reset({});
}

void Conversation::reset(std::string system) {
  system_ = std::move(system);
  messages_.clear();
  ids_.clear();
  decoder_.reset(0);
  sampler_.forget();
  append(format_.begin());
}

void Conversation::append(const std::vector<int32_t>& ids) {
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  sampler_.see(ids);
}

std::vector<int32_t> Conversation::turn_of(std::string_view text) const {
  return format_.user_turn(text, messages_.empty() ? system_ : std::string_view());
}

void Conversation::load(const std::vector<Message>& messages, const std::string& place) {
  check_roles(messages, place);
  const size_t first = !messages.empty() && messages[0].role == "system" ? 1 : 0;
  const std::string system = first ? messages[0].content : std::string();
  std::vector<int32_t> ids;
  for (size_t i = first; i < messages.size(); ++i) {
    const auto more = messages[i].role == "user"
                          ? format_.user_turn(messages[i].content, i == first ? system : "")
                          : format_.answer(messages[i].content);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  if (static_cast<int64_t>(ids.size()) >= longest_)
    fail("{}: {} tokens do not fit the model's {} (max_position_embeddings)", place, ids.size(),
         longest_);
  reset(system);
  append(ids);
  messages_.assign(messages.begin() + static_cast<ptrdiff_t>(first), messages.end());
}

std::vector<Message> Conversation::messages() const {
  std::vector<Message> all;
  if (!system_.empty()) all.push_back({"system", system_});
  all.insert(all.end(), messages_.begin(), messages_.end());
  return all;
}

Generation Conversation::say(std::string_view text,
                             const std::function<void(std::string_view)>& on_text,
                             const std::function<bool()>& interrupted) {
  const std::vector<int32_t> turn = turn_of(text);
  const int64_t room = longest_ - length() - static_cast<int64_t>(turn.size());
  if (room < kShortestAnswer)
    throw DoesNotFit(fmt::format(
        "{} tokens more do not fit: the conversation has {} of the model's {}; /reset starts anew",
        turn.size(), length(), longest_));
  append(turn);
  messages_.push_back({"user", std::string(trimmed(text))});

  Generation result;
  const auto unread = std::span(ids_).subspan(static_cast<size_t>(decoder_.length(0)));
  result.prompt_tokens = static_cast<int64_t>(unread.size());
  make_room(decoder_, length() + std::min({options_.write.max_tokens, kFirstTokens, room}),
            longest_);
  Writer writer(tokenizer_, sampler_, options_.write, room);
  const auto start = Clock::now();
  const std::optional<Tensor> logits = prefill(ctx_, decoder_, 0, unread, interrupted);
  result.prompt_seconds = seconds_since(start);
  if (logits) {
    write_answer(result, writer, *logits, on_text, interrupted);
  } else {
    writer.interrupt();
  }
  result.new_tokens = writer.new_tokens();
  result.stopped = writer.stopped();
  ids_.insert(ids_.end(), writer.ids().begin(), writer.ids().end());  // the sampler saw them
  append(format_.answer_end());
  messages_.push_back({"assistant", result.text});
  return result;
}

void Conversation::write_answer(Generation& result, Writer& writer, Tensor logits,
                                const std::function<void(std::string_view)>& on_text,
                                const std::function<bool()>& interrupted) {
  const auto emit = [&](const std::string& text) {
    result.text += text;
    if (!text.empty()) on_text(text);
  };
  const auto start = Clock::now();
  while (true) {
    emit(writer.take(logits));
    if (writer.stopped() == Stopped::not_yet && interrupted()) emit(writer.interrupt());
    if (writer.stopped() != Stopped::not_yet) break;
    make_room(decoder_, decoder_.length(0) + 1, longest_);
    const Decoder::Piece piece{0, std::span(writer.ids()).last(1)};
    logits = decoder_.step(ctx_, {&piece, 1});
    ++result.decode_steps;
  }
  result.decode_seconds = seconds_since(start);
}

}  // namespace zaya
