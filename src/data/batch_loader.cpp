#include "data/batch_loader.h"

#include <algorithm>
#include <utility>

namespace zaya {

BatchLoader::BatchLoader(Fill fill, int64_t first, int64_t ahead)
    : fill_(std::move(fill)),
      index_(first),
      ahead_(static_cast<size_t>(std::max<int64_t>(ahead, 1))),
      thread_([this] { run(); }) {}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool BatchLoader::next(Batch& batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || ended_; });
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return false;
  }
  std::swap(batch, ready_.front());
  spare_.push_back(std::move(ready_.front()));
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return true;
}

void BatchLoader::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || ready_.size() < ahead_; });
    if (stopping_) return;
    Batch batch;
    if (!spare_.empty()) {
      batch = std::move(spare_.back());
      spare_.pop_back();
    }
    lock.unlock();
    bool filled = false;
    std::exception_ptr error;
    try {
      filled = fill_(index_, batch);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (!filled) {
      error_ = error;
      ended_ = true;
      changed_.notify_all();
      return;
    }
    ++index_;
    ready_.push_back(std::move(batch));
    changed_.notify_all();
  }
}

}  // namespace zaya
