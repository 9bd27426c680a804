// Tokenizers over text: MB of text a second, on one thread. Without an argument the tokenizer of
// the Gemma 3 models is measured (tests/fixtures); ZAYA_TOKENIZER names another one. There is no
// ceiling to hold this against but the copy of a text, which is thousands of times faster.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>

#include "core/file.h"
#include "data/byte_source.h"
#include "data/tokenizer.h"

namespace zaya::bench {
namespace {

constexpr size_t kBytes = 4 << 20;

std::string gemma_file() {
  std::string text;
  LineReader(ZAYA_SOURCE_DIR "/tests/fixtures/gemma3/tokenizer.json.zst").append_rest(text);
  return text;
}

const Tokenizer& tokenizer() {
  static const auto tokenizer = [] {
    const char* path = std::getenv("ZAYA_TOKENIZER");
    return path ? open_tokenizer(path) : make_hf_tokenizer(gemma_file(), "tokenizer.json");
  }();
  return *tokenizer;
}

std::string english() { return read_file(ZAYA_SOURCE_DIR "/data/quickstart/train.txt"); }

std::string code() {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(ZAYA_SOURCE_DIR "/src")) {
    if (entry.is_regular_file() && text.size() < kBytes) text += read_file(entry.path());
  }
  return text;
}

// Words of Chinese and Japanese characters out of the vocabulary, short ids (common ones) more
// often, with punctuation.
std::string cjk() {
  std::vector<std::string> words;
  for (int32_t id = 0; id < tokenizer().vocab_size(); ++id) {
    const auto bytes = tokenizer().bytes_of(id);
    const auto lead = bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]);
    if (bytes.size() >= 3 && lead >= 0xe3 && lead <= 0xe9) words.emplace_back(bytes);
  }
  std::mt19937 random(1);
  std::string text;
  while (text.size() < kBytes && !words.empty()) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    text += words[static_cast<size_t>(u * u * u * static_cast<double>(words.size()))];
    if (random() % 10 == 0) text += "\u3002";
  }
  return text;
}

std::string one_letter() { return std::string(kBytes, 'a'); }

void encode(benchmark::State& state, std::string (*make)()) {
  const std::string text = make();
  tokenizer().encode(text);  // opens it and fills caches
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer().encode(text));
  state.counters["MB/s"] = benchmark::Counter(static_cast<double>(text.size()) / 1e6,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void decode(benchmark::State& state) {
  const std::vector<int32_t> ids = tokenizer().encode(english());
  size_t bytes = 0;
  for (auto _ : state) bytes = tokenizer().decode(ids).size();
  state.counters["MB/s"] = benchmark::Counter(static_cast<double>(bytes) / 1e6,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void open_gemma(benchmark::State& state) {
  const std::string file = gemma_file();
  for (auto _ : state) make_hf_tokenizer(file, "tokenizer.json");
}

BENCHMARK_CAPTURE(encode, english, english)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, code, code)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, cjk, cjk)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode, one_letter, one_letter)->Unit(benchmark::kMillisecond);
BENCHMARK(decode)->Unit(benchmark::kMillisecond);
BENCHMARK(open_gemma)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace zaya::bench
