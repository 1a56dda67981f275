#include "base/core/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace r2cc::fork_guard {
namespace {

constexpr int kWordBits = 64;

// Relaxed everywhere: the child that reads the words has one thread, the one that forked, and a set that another thread is changing at
// that moment is right either way.
constinit std::array<std::atomic<uint64_t>, kFdsMax / kWordBits> words{};
constinit std::atomic<bool> in_forked_child{false};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

void CloseInChild() {
  const int saved_errno = errno;
  in_forked_child.store(true, std::memory_order_relaxed);
  for (size_t i = 0; i < words.size(); ++i)
    for (uint64_t word = words[i].exchange(0, std::memory_order_relaxed); word != 0; word &= word - 1)
      close(static_cast<int>(i) * kWordBits + std::countr_zero(word));
  errno = saved_errno;
}

bool Guardable(int fd) { return fd >= 0 && fd < kFdsMax; }
std::atomic<uint64_t>& WordOf(int fd) { return words[static_cast<size_t>(fd / kWordBits)]; }
constexpr uint64_t BitOf(int fd) { return uint64_t{1} << (fd % kWordBits); }

}  // namespace

bool InstallOnce() {
  static const bool installed = pthread_atfork(nullptr, nullptr, CloseInChild) == 0;
  return installed;
}

bool Add(int fd) {
  if (!Guardable(fd)) return false;
  WordOf(fd).fetch_or(BitOf(fd), std::memory_order_relaxed);
  return true;
}

bool Remove(int fd) {
  if (!Guardable(fd)) return false;
  WordOf(fd).fetch_and(~BitOf(fd), std::memory_order_relaxed);
  return true;
}

bool InForkedChild() { return in_forked_child.load(std::memory_order_relaxed); }

}  // namespace r2cc::fork_guard
