#pragma once
// Byte pair encoding as the "model" of tokenizer.json describes it: a piece of text becomes one
// symbol per character, and then the pair of neighbours of the lowest rank is merged, until no
// neighbours have a rank.

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "data/hf_file.h"
#include "data/hf_pair_table.h"
#include "data/hf_vocabulary.h"

namespace zaya {

class HfBpe {
 public:
  // What one thread needs to encode.
  class Scratch;

  // Error for settings that are not supported and merges of pieces that are no tokens.
  // The vocabulary must outlive it.
  HfBpe(const HfFile& file, const HfVocabulary& vocabulary);
  ~HfBpe();

  // Ids that text must not be able to make, when `literal` is asked for: merges that would give
  // one are left out.
  void set_special(const std::vector<int32_t>& ids);

  // Appends the ids of one piece (well-formed UTF-8).
  void encode(std::string_view piece, bool literal, Scratch& scratch,
              std::vector<int32_t>& ids) const;

  // Frees what was taken when it goes away.
  class Lease;
  Lease take_scratch() const;

  bool byte_fallback() const { return byte_fallback_; }
  std::optional<int32_t> unknown() const { return unknown_; }

 private:
  struct Merge {
    uint32_t rank;
    int32_t result;
  };
  struct Writer;

  void read_settings(const HfFile& file);
  void read_merges(const HfFile& file);
  bool spells_itself(int32_t id) const;
  void find_junctions(const HfFile& file);
  int32_t symbol_of(std::string_view character, bool first, bool last) const;
  bool is_special(int32_t id) const {
    return static_cast<size_t>(id) < special_.size() && special_[static_cast<size_t>(id)];
  }
  bool add_bytes(std::string_view symbol, Writer& writer) const;
  void merge(bool literal, Scratch& scratch, std::vector<int32_t>& ids) const;
  void merge_word(Scratch& scratch, std::vector<int32_t>& ids) const;
  void merge_all(bool literal, Scratch& scratch, std::vector<int32_t>& ids) const;
  const Merge* merge_of(int32_t left, int32_t right, bool literal) const {
    const Merge* merge = merges_.find(left, right);
    return merge && literal && is_special(merge->result) ? nullptr : merge;
  }

  const HfVocabulary& vocabulary_;
  std::string prefix_;  // continuing_subword_prefix: before every character but a piece's first
  std::string suffix_;  // end_of_word_suffix: behind a piece's last character
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;
  std::optional<int32_t> unknown_;
  std::array<int32_t, 256> byte_ids_{};  // -1 where there is no such token
  std::vector<int32_t> character_ids_;   // of every code point, -1 for none
  PairTable<Merge> merges_;
  // The neighbouring characters that some merge can join. A piece falls apart between all others,
  // and what is merged on one side depends on nothing on the other. Known only if every merged
  // token is made of the characters of its content (cuts_).
  bool cuts_ = false;
  PairTable<char> junctions_;
  std::vector<bool> special_;

  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> free_;
};

// A symbol of the piece being merged. `id` is -1 for one that was merged into the one before it.
struct HfSymbol {
  int32_t id;
  int32_t previous;
  int32_t next;
};

// Two neighbours that can be merged, first the lowest rank, then the leftmost.
struct HfCandidate {
  uint64_t order;  // rank, then the left one's position
  int32_t result;
};

class HfBpe::Scratch {
 public:
  // Short runs of symbols and the ids that they merge into: most words are old ones.
  struct Word {
    static constexpr size_t kMax = 20;
    uint8_t size = 0;
    uint8_t merged_size = 0;
    std::array<int32_t, kMax> symbols;
    std::array<int32_t, kMax> merged;
  };
  static constexpr size_t kWords = 1 << 14;

  std::vector<int32_t> run;  // symbols not merged yet
  std::vector<HfSymbol> symbols;
  std::vector<HfCandidate> heap;
  std::vector<Word> words{kWords};
};

class HfBpe::Lease {
 public:
  Lease(const HfBpe& bpe, std::unique_ptr<Scratch> scratch)
      : bpe_(bpe), scratch_(std::move(scratch)) {}
  Lease(const Lease&) = delete;
  ~Lease();
  Scratch& operator*() const { return *scratch_; }

 private:
  const HfBpe& bpe_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace zaya
