#pragma once
// Where the time of a step goes, by group of ops. Off (a null pointer in the Context) it costs a
// comparison.

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

namespace zaya {

enum class OpGroup {
  projections,   // queries, keys, values, attention's output
  convolutions,  // both of CCA's, the mean path, q/k norm, rotary, value shift
  attention,
  router,
  experts,  // sort, gather, products, SwiGLU, weighted sum
  head,     // logits, loss
  norms,    // residual merges and norms
  other,    // embedding, clearing gradients, ...
};
inline constexpr size_t kOpGroups = 8;

// Seconds spent in each group. One thread drives a model, and it alone keeps the clock.
class Profile {
 public:
  double seconds(OpGroup group) const { return seconds_[static_cast<size_t>(group)]; }

  // Charges the time since the last call to the group that was open, and opens another.
  OpGroup enter(OpGroup group) {
    const Clock::time_point now = Clock::now();
    if (running_)
      seconds_[static_cast<size_t>(open_)] += std::chrono::duration<double>(now - since_).count();
    running_ = true;
    since_ = now;
    return std::exchange(open_, group);
  }
  // Charges the open group, and stops the clock until the next enter().
  void stop() {
    enter(OpGroup::other);
    running_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::array<double, kOpGroups> seconds_{};
  Clock::time_point since_;
  OpGroup open_ = OpGroup::other;
  bool running_ = false;
};

// While it lives, time belongs to its group; then to the one around it again.
class Timed {
 public:
  Timed(Profile* profile, OpGroup group) : profile_(profile) {
    if (profile_) before_ = profile_->enter(group);
  }
  ~Timed() {
    if (profile_) profile_->enter(before_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Profile* profile_;
  OpGroup before_ = OpGroup::other;
};

}  // namespace zaya
