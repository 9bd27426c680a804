#include "data/hf_bpe.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/hf_unicode.h"

namespace zaya {
namespace {

constexpr size_t kCodePoints = 0x110000;
// Vectors this long are given back after the piece that needed them.
constexpr size_t kMaxKept = size_t{1} << 20;

// The contents of a member that may be null.
std::string text_or_empty(const JsonObject& object, const char* key) {
  return object.string_or(key, "");
}

std::string_view last_character(std::string_view text) {
  return text.substr(previous_character(text, text.size()));
}
std::string_view first_character(std::string_view text) {
  size_t end = 0;
  next_character(text, end);
  return text.substr(0, end);
}

}  // namespace

HfBpe::HfBpe(const HfFile& file, const HfVocabulary& vocabulary) : vocabulary_(vocabulary) {
  read_settings(file);
  read_merges(file);
  if (cuts_) find_junctions(file);
}

HfBpe::~HfBpe() = default;

void HfBpe::read_settings(const HfFile& file) {
  const JsonObject model = JsonObject(file.document, file.place).object("model");
  if (model.number_or("dropout", 0) != 0) model.fail_wanted("dropout", "null or 0");
  prefix_ = text_or_empty(model, "continuing_subword_prefix");
  suffix_ = text_or_empty(model, "end_of_word_suffix");
  byte_fallback_ = model.boolean_or("byte_fallback", false);
  fuse_unknown_ = model.boolean_or("fuse_unk", false);
  ignore_merges_ = model.boolean_or("ignore_merges", false);
  if (model.has("unk_token")) {
    unknown_ = vocabulary_.find(model.string("unk_token"));
    if (!unknown_) model.fail_wanted("unk_token", "a token of model.vocab");
  }
  for (size_t byte = 0; byte < 256; ++byte)
    byte_ids_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  character_ids_.assign(kCodePoints, -1);
  for (const auto& [content, id] : file.vocab) {
    if (content.empty() || content.size() > 4) continue;
    size_t at = 0;
    const char32_t c = next_character(content, at);
    if (at == content.size()) character_ids_[c] = id;
  }
}

void HfBpe::read_merges(const HfFile& file) {
  merges_ = PairTable<Merge>(file.merges.size());
  cuts_ = prefix_.empty() && suffix_.empty();
  std::string merged;
  for (size_t rank = 0; rank < file.merges.size(); ++rank) {
    const auto [left, right] = file.merges[rank];
    const auto id_of = [&](std::string_view piece) {
      const auto id = vocabulary_.find(piece);
      if (!id)
        fail("{}: model.merges[{}]: wanted pieces that are tokens of model.vocab, got {}",
             file.place, rank, json_quoted(piece));
      return *id;
    };
    merged = left;
    merged += right.starts_with(prefix_) ? right.substr(prefix_.size()) : right;
    const int32_t left_id = id_of(left), right_id = id_of(right);
    merges_.set(left_id, right_id, {static_cast<uint32_t>(rank), id_of(merged)});
    cuts_ = cuts_ && spells_itself(left_id) && spells_itself(right_id);
  }
}

// Tokens for bytes and for the unknown stand for other characters than they spell.
bool HfBpe::spells_itself(int32_t id) const {
  const std::string_view content = vocabulary_.content(id);
  return !content.empty() && id != unknown_ &&
         !(byte_fallback_ && content.size() == 6 && content.starts_with("<0x"));
}

void HfBpe::find_junctions(const HfFile& file) {
  junctions_ = PairTable<char>(file.merges.size());
  for (const auto& [left, right] : file.merges) {
    const int32_t last = symbol_of(last_character(left), true, false);
    const int32_t first = symbol_of(first_character(right), true, false);
    // A character that is no token never becomes a symbol, so no text gets to this merge.
    if (last >= 0 && first >= 0) junctions_.set(last, first, 1);
  }
}

void HfBpe::set_special(const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    if (id == unknown_) continue;
    if (special_.size() <= static_cast<size_t>(id)) special_.resize(static_cast<size_t>(id) + 1);
    special_[static_cast<size_t>(id)] = true;
  }
}

int32_t HfBpe::symbol_of(std::string_view character, bool first, bool last) const {
  const bool plain = (first || prefix_.empty()) && (!last || suffix_.empty());
  if (plain) {
    size_t at = 0;
    return character_ids_[next_character(character, at)];
  }
  std::string content = first ? "" : prefix_;
  content += character;
  if (last) content += suffix_;
  return vocabulary_.find(content).value_or(-1);
}

// Collects the symbols of a piece, and merges each run of them that nothing can join to the next.
struct HfBpe::Writer {
  const HfBpe& bpe;
  const bool literal;
  Scratch& scratch;
  std::vector<int32_t>& ids;

  void add(int32_t symbol) {
    std::vector<int32_t>& run = scratch.run;
    if (bpe.cuts_ && !run.empty() && !bpe.junctions_.find(run.back(), symbol)) flush();
    run.push_back(symbol);
  }
  void flush() {
    bpe.merge(literal, scratch, ids);
    scratch.run.clear();
  }
};

// A token for each byte, if there is one for each.
bool HfBpe::add_bytes(std::string_view symbol, Writer& writer) const {
  const auto id_of = [&](char byte) { return byte_ids_[static_cast<uint8_t>(byte)]; };
  if (!std::all_of(symbol.begin(), symbol.end(), [&](char byte) { return id_of(byte) >= 0; }))
    return false;
  for (const char byte : symbol) writer.add(id_of(byte));
  return true;
}

void HfBpe::encode(std::string_view piece, bool literal, Scratch& scratch,
                   std::vector<int32_t>& ids) const {
  if (ignore_merges_) {
    const auto id = vocabulary_.find(piece);
    if (id && !(literal && is_special(*id))) return ids.push_back(*id);
  }
  if (piece.size() > size_t{INT32_MAX})
    fail("text: wanted at most {} bytes without a place to cut, got {}", INT32_MAX, piece.size());
  Writer writer{*this, literal, scratch, ids};
  bool unknown = false;  // an unknown token waits for others to fuse with
  size_t at = 0;
  while (at < piece.size()) {
    const size_t begin = at;
    next_character(piece, at);
    const std::string_view character = piece.substr(begin, at - begin);
    const bool first = begin == 0, last = at == piece.size();
    const int32_t id = symbol_of(character, first, last);
    if (id >= 0 && !(literal && is_special(id))) {
      if (std::exchange(unknown, false)) writer.add(*unknown_);
      writer.add(id);
      continue;
    }
    if (byte_fallback_) {
      const std::string_view before = first ? std::string_view() : prefix_;
      const std::string_view behind = last ? suffix_ : std::string_view();
      if (add_bytes(fmt::format("{}{}{}", before, character, behind), writer)) continue;
    }
    if (!unknown_) continue;  // HF drops it too
    if (unknown && !fuse_unknown_) writer.add(*unknown_);
    unknown = true;
  }
  if (unknown) writer.add(*unknown_);
  writer.flush();
}

void HfBpe::merge(bool literal, Scratch& scratch, std::vector<int32_t>& ids) const {
  const std::vector<int32_t>& run = scratch.run;
  if (run.empty()) return;
  const size_t before = ids.size();
  if (run.size() == 1) {
    ids.push_back(run[0]);
  } else if (run.size() <= Scratch::Word::kMax) {
    merge_word(scratch, ids);
  } else {
    merge_all(false, scratch, ids);
  }
  if (!literal) return;
  const auto merged = ids.begin() + static_cast<std::ptrdiff_t>(before);
  if (std::none_of(merged, ids.end(), [&](int32_t id) { return is_special(id); })) return;
  ids.resize(before);
  merge_all(true, scratch, ids);
}

// By the words remembered: what a run merges into depends on nothing else.
void HfBpe::merge_word(Scratch& scratch, std::vector<int32_t>& ids) const {
  const std::vector<int32_t>& run = scratch.run;
  uint64_t hash = hash_seed();
  for (const int32_t symbol : run)
    hash = std::rotl((hash ^ static_cast<uint32_t>(symbol)) * 0x9e3779b97f4a7c15u, 29);
  Scratch::Word& word = scratch.words[hash % Scratch::kWords];
  if (word.size == run.size() && std::equal(run.begin(), run.end(), word.symbols.begin())) {
    ids.insert(ids.end(), word.merged.begin(), word.merged.begin() + word.merged_size);
    return;
  }
  const size_t before = ids.size();
  merge_all(false, scratch, ids);
  word.size = static_cast<uint8_t>(run.size());
  word.merged_size = static_cast<uint8_t>(ids.size() - before);
  std::copy(run.begin(), run.end(), word.symbols.begin());
  std::copy(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), word.merged.begin());
}

// With a heap of the pairs that can be merged, as HF does it, which defines the ids also where
// ranks leave a choice: an entry outlives its pair when the new neighbours merge into the same
// token, and then keeps its rank.
void HfBpe::merge_all(bool literal, Scratch& scratch, std::vector<int32_t>& ids) const {
  const std::vector<int32_t>& run = scratch.run;
  std::vector<HfSymbol>& symbols = scratch.symbols;
  std::vector<HfCandidate>& heap = scratch.heap;
  const auto later = [](const HfCandidate& a, const HfCandidate& b) { return a.order > b.order; };
  const auto count = static_cast<int32_t>(run.size());
  const auto candidate = [&](int32_t left, int32_t right) {
    const auto at = static_cast<size_t>(left);
    const Merge* merge = merge_of(symbols[at].id, symbols[static_cast<size_t>(right)].id, literal);
    if (!merge) return false;
    heap.push_back({uint64_t{merge->rank} << 32 | at, merge->result});
    return true;
  };
  symbols.resize(run.size());
  for (int32_t i = 0; i < count; ++i)
    symbols[static_cast<size_t>(i)] = {run[static_cast<size_t>(i)], i - 1,
                                       i + 1 < count ? i + 1 : -1};
  heap.clear();
  for (int32_t i = 0; i + 1 < count; ++i) candidate(i, i + 1);
  std::make_heap(heap.begin(), heap.end(), later);

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const HfCandidate top = heap.back();
    heap.pop_back();
    const auto at = static_cast<int32_t>(top.order & 0xffffffff);
    HfSymbol& left = symbols[static_cast<size_t>(at)];
    if (left.id < 0 || left.next < 0) continue;
    HfSymbol& right = symbols[static_cast<size_t>(left.next)];
    const Merge* merge = merge_of(left.id, right.id, literal);
    if (!merge || merge->result != top.result) continue;
    left.id = top.result;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = at;
    if (left.previous >= 0 && candidate(left.previous, at))
      std::push_heap(heap.begin(), heap.end(), later);
    if (left.next >= 0 && candidate(at, left.next)) std::push_heap(heap.begin(), heap.end(), later);
  }
  for (const HfSymbol& symbol : symbols) {
    if (symbol.id >= 0) ids.push_back(symbol.id);
  }
}

HfBpe::Lease HfBpe::take_scratch() const {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return Lease(*this, std::make_unique<Scratch>());
  auto scratch = std::move(free_.back());
  free_.pop_back();
  return Lease(*this, std::move(scratch));
}

HfBpe::Lease::~Lease() {
  scratch_->run.clear();
  if (scratch_->symbols.capacity() > kMaxKept) scratch_->symbols = {};
  if (scratch_->heap.capacity() > kMaxKept) scratch_->heap = {};
  if (scratch_->run.capacity() > kMaxKept) scratch_->run = {};
  const std::lock_guard lock(bpe_.mutex_);
  bpe_.free_.push_back(std::move(scratch_));
}

}  // namespace zaya
