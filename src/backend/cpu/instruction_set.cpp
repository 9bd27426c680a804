#include "backend/cpu/instruction_set.h"

#include <hwy/highway.h>

namespace zaya {

const char* instruction_set() {
  const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(usable & -usable);  // the lowest bit is the best one
}

}  // namespace zaya
