#pragma once
// A group of processes and what they do together. Every process of the group makes the same calls
// in the same order, with sizes that agree. All calls come from one thread.
//
// Waits have a time limit and watch the others (watch.h): a process that is gone, stopped or late
// ends the wait with a CommError that names it. What was sent or received is then undefined, and no
// further call is made.
//
// Sums are made from the processes' numbers in the order of their ranks, ((x0 + x1) + x2) + ..., so
// that they are the same bits on every process, whatever library carries them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace zaya {

// A peer was lost, or a wait passed its limit.
class CommError : public Error {
 public:
  using Error::Error;
};

// A transfer under way. Its memory belongs to it until wait() has returned.
class Transfer {
 public:
  virtual ~Transfer() = default;  // a transfer that was not waited for is waited for here
  virtual void wait() = 0;        // a second call returns at once
};

class Group {
 public:
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool alone() const { return size_ == 1; }

  // ---- Moves. Pieces lie end to end in the order of the ranks; lengths are in bytes -------------

  // Rank r's piece goes to everyone: `all` holds lengths[0] + lengths[1] + ... bytes.
  // mine may be this rank's place in `all`.
  virtual std::unique_ptr<Transfer> start_all_gather(void* all, std::span<const int64_t> lengths,
                                                     const void* mine, const char* what) = 0;
  // Piece r of `from` (send[r] bytes) goes to rank r; `to` gets receive[r] bytes of rank r.
  virtual std::unique_ptr<Transfer> start_all_to_all(void* to, std::span<const int64_t> receive,
                                                     const void* from,
                                                     std::span<const int64_t> send,
                                                     const char* what) = 0;
  // `bytes` bytes to rank `to`, while as many (its own `bytes`) come from rank `from`. Either may
  // be -1: nothing goes, nothing comes.
  virtual std::unique_ptr<Transfer> start_exchange(int to, const void* sent, int64_t sent_bytes,
                                                   int from, void* received, int64_t received_bytes,
                                                   const char* what) = 0;

  void all_gather(void* all, std::span<const int64_t> lengths, const void* mine, const char* what) {
    start_all_gather(all, lengths, mine, what)->wait();
  }
  void all_to_all(void* to, std::span<const int64_t> receive, const void* from,
                  std::span<const int64_t> send, const char* what) {
    start_all_to_all(to, receive, from, send, what)->wait();
  }

  // ---- Small values -----------------------------------------------------------------------------

  // Everyone's values, [size][values.size()].
  template <class T>
  std::vector<T> gather(std::span<const T> values, const char* what) {
    std::vector<T> all(values.size() * static_cast<size_t>(size_));
    const std::vector<int64_t> lengths(static_cast<size_t>(size_),
                                       static_cast<int64_t>(values.size_bytes()));
    all_gather(all.data(), lengths, values.data(), what);
    return all;
  }
  // values become their sums over the group (in the order of the ranks).
  template <class T>
  void sum(std::span<T> values, const char* what) {
    if (alone()) return;
    const std::vector<T> all = gather(std::span<const T>(values), what);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = all[i];
      for (size_t r = 1; r < static_cast<size_t>(size_); ++r)
        values[i] += all[r * values.size() + i];
    }
  }
  // Everyone's text.
  std::vector<std::string> gather_text(std::string_view text, const char* what);
  // Returns when all have come.
  void barrier(const char* what);

  // The processes of this group that say the same `color`, in the order of their ranks here.
  virtual std::unique_ptr<Group> split(int color) = 0;

 protected:
  Group(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

// A group of one.
std::unique_ptr<Group> self_group();

}  // namespace zaya
