#include "data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <random>

#include "data/train_tokenizer.h"
#include "files.h"

namespace zaya {
namespace {

using test::contains;
using test::error_of;
using test::TemporaryFolder;

// A tokenizer of 512 tokens learnt once from part of the quickstart corpus.
const TemporaryFolder& folder() {
  static const TemporaryFolder folder;
  return folder;
}

std::string learnt_model() {
  static const std::string path = [] {
    std::string text = read_file(ZAYA_SOURCE_DIR "/data/quickstart/heldout.txt");
    for (int i = 0; i < 300; ++i) text += "        indented code\n";
    const std::string input = folder().file("text.txt", text);
    TrainTokenizerOptions options;
    options.text.separator = "%";
    testing::internal::CaptureStderr();
    train_tokenizer({input}, 512, folder() / "tokenizer.model", options, [](auto, double) {});
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    return folder() / "tokenizer.model";
  }();
  return path;
}

const Tokenizer& learnt() {
  static const auto tokenizer = open_tokenizer(learnt_model());
  return *tokenizer;
}

const std::vector<std::string>& nasty_strings() {
  using namespace std::string_literals;
  static const std::vector<std::string> strings = {
      "",
      " ",
      "  ",
      "\n",
      "\n\n\n",
      " leading and trailing ",
      "two  spaces   three",
      "tab\there\r\nand a Windows line",
      "nul\0inside"s,
      "\x01\x02\x1b[0m\x7f",
      "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80 \xe4\xb8\xad\xe6\x96\x87",
      "e\xcc\x81 is not \xc3\xa9",
      "\xef\xac\x81\xe2\x91\xa0\xef\xbc\xa1 would change under NFKC",
      "the space mark \xe2\x96\x81 itself \xe2\x96\x81\xe2\x96\x81",
      "the reserved \xe2\x96\x85 mark \xe2\x81\x87",
      "\xff\xfe\x80\xc3\x28 broken \xe2\x82",
      "\xed\xa0\x80 a surrogate",
      "<s></s><unk><0x41>",
      "12345 3.14159 0x7fffffff",
      std::string(5000, ' '),
      std::string(5000, 'a'),
      std::string(300, '\n') + " x",
      "\xef\xbb\xbfmark",
  };
  return strings;
}

TEST(Tokenizer, LearntOneGivesBackNastyStringsExactly) {
  for (const std::string& text : nasty_strings()) {
    EXPECT_EQ(learnt().decode(learnt().encode(text)), text);
  }
}

TEST(Tokenizer, ByteOneGivesBackNastyStringsExactly) {
  const auto tokenizer = make_byte_tokenizer();
  for (const std::string& text : nasty_strings()) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(Tokenizer, GivesBackRandomBytesExactly) {
  std::mt19937 random(7);
  const std::string_view common =
      " \n\xe2\x96\x81"
      "abc\xc3\xa9\xff";
  for (int i = 0; i < 500; ++i) {
    std::string text(random() % 60, '\0');
    for (char& c : text) {
      c = static_cast<char>(random() % 3 == 0 ? random() : common[random() % common.size()]);
    }
    EXPECT_EQ(learnt().decode(learnt().encode(text)), text);
  }
}

TEST(Tokenizer, KeepsItsSpecialIds) {
  EXPECT_EQ(learnt().bos(), 1);
  EXPECT_EQ(learnt().eos(), 2);
  EXPECT_EQ(learnt().vocab_size(), 512);
  EXPECT_TRUE(learnt().exact());
}

TEST(Tokenizer, SpecialTokensAndOnlyTheyStandForNoBytes) {
  for (int32_t id = 0; id < learnt().vocab_size(); ++id) {
    EXPECT_EQ(learnt().byte_length(id) == 0, id < 3) << id;
  }
}

TEST(Tokenizer, LearnsAnEmptyLineAsOneToken) { EXPECT_EQ(learnt().encode("\n\n").size(), 1u); }

TEST(Tokenizer, LearnsRunsOfSpaces) { EXPECT_EQ(learnt().encode("        ").size(), 1u); }

TEST(Tokenizer, SplitsNumbersIntoDigits) { EXPECT_EQ(learnt().encode("1990").size(), 4u); }

TEST(Tokenizer, TextDoesNotBecomeSpecialTokens) {
  for (const int32_t id : learnt().encode("<s></s><unk>")) EXPECT_GT(id, 2);
}

TEST(Tokenizer, ALongTextEncodesAsItsWordsDo) {
  std::string text;
  std::vector<int32_t> ids;
  for (int i = 0; i < 400; ++i) {
    const std::string word = i % 7 == 0 ? " the" : i % 3 == 0 ? "  program.\n\n" : " hacker's";
    text += word;
    const auto word_ids = learnt().encode(word);
    ids.insert(ids.end(), word_ids.begin(), word_ids.end());
  }
  EXPECT_EQ(learnt().encode(text), ids);
}

TEST(Tokenizer, EncodesAsTheLibraryDoesWithTheWholeText) {
  sentencepiece::SentencePieceProcessor library;
  ASSERT_TRUE(library.Load(learnt_model()).ok());
  const std::string text =
      read_file(ZAYA_SOURCE_DIR "/data/quickstart/train.txt").substr(0, 100000) + " ab  c   d ";
  std::vector<int> ids;
  ASSERT_TRUE(library.Encode(text, &ids).ok());
  EXPECT_EQ(learnt().encode(text), std::vector<int32_t>(ids.begin(), ids.end()));
}

TEST(Tokenizer, TrainingTwiceGivesTheSameBytes) {
  TrainTokenizerOptions options;
  options.text.separator = "%";
  learnt_model();
  train_tokenizer({folder() / "text.txt"}, 512, folder() / "again.model", options,
                  [](auto, double) {});
  EXPECT_EQ(read_file(folder() / "again.model"), read_file(learnt_model()));
}

TEST(Tokenizer, TrainingOnASampleStaysWithinItsBytes) {
  TrainTokenizerOptions options;
  options.text.separator = "%";
  options.max_bytes = 30000;
  learnt_model();
  const auto summary = train_tokenizer({folder() / "text.txt"}, 400, folder() / "sample.model",
                                       options, [](auto, double) {});
  EXPECT_LE(summary.bytes, options.max_bytes);
  EXPECT_GT(summary.bytes, options.max_bytes / 8);
}

TEST(Tokenizer, LearnsFromTextThatWouldStopTheLibrary) {
  // A word of more than 65535 characters, its reserved characters, broken UTF-8, zero bytes.
  std::string text(200000, 'x');
  text += " a \xe2\x96\x81 b \xe2\x96\x85 c \xff\xc3 d ";
  text.push_back('\0');
  for (int i = 0; i < 500; ++i) text += fmt::format(" words {} to learn\n\n", i * 7919);
  const std::string input = folder().file("hard.txt", text);
  train_tokenizer({input}, 300, folder() / "hard.model", {}, [](auto, double) {});
  const auto tokenizer = open_tokenizer(folder() / "hard.model");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(Tokenizer, TrainingRefusesVocabulariesThatDoNotFitTheText) {
  const std::string input = folder().file("small.txt", "a few words only");
  const auto train = [&](int32_t vocab) {
    return error_of(
        [&] { train_tokenizer({input}, vocab, folder() / "none.model", {}, [](auto, double) {}); });
  };
  EXPECT_TRUE(contains(train(259), "wanted more than 259"));
  EXPECT_TRUE(contains(train(100000), "cannot learn 100000 tokens"));
  EXPECT_FALSE(fs::exists(folder() / "none.model"));
}

TEST(Tokenizer, TrainingRefusesEmptyInput) {
  const std::string input = folder().file("empty.txt", "");
  EXPECT_TRUE(contains(error_of([&] {
                         train_tokenizer({input}, 300, folder() / "none.model", {},
                                         [](auto, double) {});
                       }),
                       "no documents"));
}

TEST(Tokenizer, ACheckpointFolderCarriesIt) {
  const TemporaryFolder checkpoint;
  save_tokenizer(learnt(), checkpoint.path());
  const auto reopened = open_tokenizer(checkpoint.path());
  EXPECT_EQ(reopened->encode("See {hacker}."), learnt().encode("See {hacker}."));
  EXPECT_EQ(reopened->file_bytes(), learnt().file_bytes());
}

TEST(Tokenizer, ACheckpointFolderCarriesTheByteTokenizerToo) {
  const TemporaryFolder checkpoint;
  save_tokenizer(*make_byte_tokenizer(), checkpoint.path());
  EXPECT_EQ(open_tokenizer(checkpoint.path())->name(), "byte");
}

TEST(Tokenizer, AFolderWithoutOneNamesTheFilesItCouldHave) {
  const TemporaryFolder empty;
  EXPECT_TRUE(contains(error_of([&] { open_tokenizer(empty.path()); }),
                       "wanted tokenizer.json, tokenizer.model or tokenizer.byte"));
}

TEST(Tokenizer, FindsATokenByItsContent) {
  EXPECT_EQ(learnt().token_id("<s>"), 1);
  EXPECT_EQ(learnt().token_id("<0x41>"), 3 + 0x41);
  EXPECT_EQ(learnt().token_id("no such token"), std::nullopt);
  EXPECT_EQ(learnt().token_id(""), std::nullopt);
  EXPECT_EQ(make_byte_tokenizer()->token_id("a"), 'a');
}

TEST(Tokenizer, ADocumentBeginsWithBos) {
  EXPECT_EQ(make_byte_tokenizer()->encode_document("a"), (std::vector<int32_t>{256, 'a'}));
}

TEST(Tokenizer, RefusesIdsOutsideItsVocabulary) {
  const std::vector<int32_t> ids = {258};
  EXPECT_TRUE(contains(error_of([&] { make_byte_tokenizer()->decode(ids); }), "got 258"));
}

TEST(Tokenizer, NamesAFileThatIsMissing) {
  EXPECT_TRUE(contains(error_of([] { open_tokenizer("/nowhere/x.model"); }), "/nowhere/x.model"));
}

}  // namespace
}  // namespace zaya
