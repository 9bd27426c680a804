#pragma once
// Fills batches ahead of their use in a thread of its own.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "data/batch.h"

namespace zaya {

class BatchLoader {
 public:
  // fill(i, batch) makes batch number i and returns false when there is none (batch i is then
  // past the end). It runs in the loader's thread, for i = first, first + 1, ..., at most `ahead`
  // batches before their use, and must not be told of anything that changes meanwhile.
  using Fill = std::function<bool(int64_t index, Batch& batch)>;
  BatchLoader(Fill fill, int64_t first, int64_t ahead = 2);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // Puts the next batch into `batch` and takes its old memory for a later one; false at the end.
  // Rethrows what fill threw, after the batches before it.
  bool next(Batch& batch);

 private:
  void run();

  Fill fill_;
  int64_t index_;
  size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::vector<Batch> spare_;
  bool ended_ = false;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace zaya
