#include "data/train_tokenizer.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <thread>
#include <unordered_map>

#include "core/error.h"
#include "core/file.h"
#include "core/random.h"
#include "data/byte_source.h"
#include "data/quiet_sentencepiece.h"
#include "data/sentencepiece_model.h"
#include "data/tokenizer.h"
#include "data/utf8.h"

namespace zaya {

namespace {

// The library marks what it leaves out of merges with this character, and skips sentences with it.
constexpr std::string_view kReserved = "\xe2\x96\x85";
// The library's positions inside a word are 16-bit, and a longer word stops the program.
constexpr size_t kMaxWordBytes = 4096;
constexpr int32_t kSpecialPieces = 3 + 256;

// The sentences that the library sees. They are not lines: newlines stay inside, so that merges
// such as ".\n\n" are learnt. A sentence ends where no merge may cross anyway (bytes that are no
// UTF-8, characters that the library reserves), and inside words of absurd length.
void append_sentences(std::string_view text, std::vector<std::string>& sentences) {
  std::string sentence;
  size_t word = 0;  // bytes since the last space
  const auto end_sentence = [&] {
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
    sentence.clear();
    word = 0;
  };
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    const std::string_view character = text.substr(0, step.bytes);
    text.remove_prefix(step.bytes);
    const bool reserved = character == kSpaceMark || character == kReserved || character[0] == '\0';
    if (step.kind != Utf8Step::character || reserved) {
      end_sentence();
      continue;
    }
    sentence += character;
    word = character == " " ? 0 : word + step.bytes;
    if (word >= kMaxWordBytes) end_sentence();
  }
  end_sentence();
}

// Keeps a sample of the documents within a limit of bytes, spread evenly over all of them and the
// same each time: document i stays while the low `level` bits of its hash are zero, and each time
// the limit is passed the level goes up.
class Sample {
 public:
  explicit Sample(int64_t max_bytes) : max_bytes_(max_bytes) {}

  void add(std::string document) {
    const uint64_t hash = mix64(static_cast<uint64_t>(index_++) + 1);
    if (!stays(hash)) return;
    bytes_ += static_cast<int64_t>(document.size());
    kept_.push_back({hash, std::move(document)});
    while (bytes_ > max_bytes_ && kept_.size() > 1) {
      ++level_;
      std::erase_if(kept_, [&](const Kept& kept) {
        if (stays(kept.hash)) return false;
        bytes_ -= static_cast<int64_t>(kept.document.size());
        return true;
      });
    }
  }
  int64_t documents() const { return static_cast<int64_t>(kept_.size()); }
  int64_t bytes() const { return bytes_; }
  // Hands out the sentences and forgets the documents.
  std::vector<std::string> take_sentences() {
    std::vector<std::string> sentences;
    for (Kept& kept : kept_) {
      append_sentences(kept.document, sentences);
      kept.document = std::string();
    }
    return sentences;
  }

 private:
  struct Kept {
    uint64_t hash;
    std::string document;
  };
  bool stays(uint64_t hash) const { return (hash & ((uint64_t{1} << level_) - 1)) == 0; }

  int64_t max_bytes_;
  int64_t index_ = 0;
  int64_t bytes_ = 0;
  int level_ = 0;
  std::vector<Kept> kept_;
};

class Sentences final : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const std::vector<std::string>& sentences) : sentences_(sentences) {}
  bool done() const override { return next_ == sentences_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return sentences_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& sentences_;
  size_t next_ = 0;
};

std::string learn(const std::vector<std::string>& sentences, int32_t vocab_size,
                  const TrainTokenizerOptions& options) {
  const int cores = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocab_size)},
      {"byte_fallback", "true"},
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"split_digits", "true"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "-1"},
      {"max_sentence_length", std::to_string(kMaxDocumentBytes)},
      {"num_threads", std::to_string(options.threads > 0 ? options.threads : cores)},
  };
  quiet_sentencepiece();
  Sentences iterator(sentences);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &iterator, &model);
  if (!status.ok()) {
    // "./src/trainer_interface.cc(580) [its condition] What is wrong."
    const std::string message = status.message();
    const size_t bracket = message.rfind("] ");
    fail("tokenizer: cannot learn {} tokens from this text: {}", vocab_size,
         bracket == std::string::npos ? message : message.substr(bracket + 2));
  }
  return model;
}

}  // namespace

TrainTokenizerSummary train_tokenizer(const std::vector<std::string>& inputs, int32_t vocab_size,
                                      const fs::path& out, const TrainTokenizerOptions& options,
                                      const TrainTokenizerProgress& progress) {
  if (vocab_size <= kSpecialPieces) {
    fail("vocabulary: wanted more than {} tokens (3 special ones and 256 bytes), got {}",
         kSpecialPieces, vocab_size);
  }
  TextReader reader(inputs, options.text);
  DurableFile file(out);  // before the work: a folder that cannot be written shows now
  Sample sample(options.max_bytes);
  std::string document;
  while (reader.next(document)) {
    sample.add(std::move(document));
    progress("reading", static_cast<double>(reader.bytes_read()) /
                            static_cast<double>(std::max<int64_t>(reader.total_bytes(), 1)));
  }
  if (sample.documents() == 0) fail("{}: wanted text, got no documents", inputs[0]);

  TrainTokenizerSummary summary{vocab_size, sample.documents(), sample.bytes()};
  progress("learning", -1);
  const std::string model = learn(sample.take_sentences(), vocab_size, options);
  const auto tokenizer = make_sentencepiece_tokenizer(model, "new tokenizer");
  ZAYA_REQUIRE(tokenizer->exact());
  summary.vocab_size = tokenizer->vocab_size();
  file.write(model);
  file.finish();
  return summary;
}

}  // namespace zaya
