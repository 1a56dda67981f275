#include "netplugin/transport/os/processors.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace r2cc::net {
namespace {

// The kernel refuses a mask that is shorter than its own; none has more processors than this.
constexpr size_t kWordsFirst = 1024 / (8 * sizeof(unsigned long));
constexpr size_t kWordsMost = 1 << 16;

cpu_set_t* SetOf(std::vector<unsigned long>& mask) { return reinterpret_cast<cpu_set_t*>(mask.data()); }

}  // namespace

Processors Processors::OfMainThread() {
  Processors processors;
  for (size_t words = kWordsFirst; words <= kWordsMost; words *= 2) {
    std::vector<unsigned long> mask(words);
    // A process has the number of its main thread.
    if (sched_getaffinity(getpid(), words * sizeof(mask[0]), SetOf(mask)) == 0) {
      processors.mask_ = std::move(mask);
      break;
    }
    if (errno != EINVAL) break;
  }
  return processors;
}

int Processors::count() const {
  int count = 0;
  for (const unsigned long word : mask_) count += std::popcount(word);
  return std::max(count, 1);
}

void Processors::Use() const {
  if (mask_.empty()) return;
  sched_setaffinity(0, mask_.size() * sizeof(mask_[0]), reinterpret_cast<const cpu_set_t*>(mask_.data()));
}

}  // namespace r2cc::net
