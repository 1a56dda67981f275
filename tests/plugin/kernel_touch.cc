#include "tests/plugin/kernel_touch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include "tests/plugin/own_process.h"

namespace r2cc::plugin_test {
namespace {

constexpr std::chrono::minutes kHeldWithin{1};

std::atomic<uint64_t> calls{0}, faults{0};

struct Hold {
  enum class Stage { kOff, kArmed, kHeld, kReleased, kDone };

  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<Stage> stage{Stage::kOff};
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;
  std::string thread;
  double limit_s = 0;
};
Hold hold;

bool IsNamed(const std::string& name) {
  char own[16];
  return pthread_getname_np(pthread_self(), own, sizeof(own)) == 0 && std::string_view(own).starts_with(name);
}

bool Names(std::span<const iovec> parts, const uint8_t* begin, const uint8_t* end) {
  for (const iovec& part : parts) {
    const auto* const from = static_cast<const uint8_t*>(part.iov_base);
    if (from < end && from + part.iov_len > begin) return true;
  }
  return false;
}

// True if the call was held: the caller says when it is made.
bool HoldIfAsked(std::span<const iovec> parts) {
  if (hold.stage.load() != Hold::Stage::kArmed) return false;
  std::unique_lock lock(hold.mutex);
  if (hold.stage.load() != Hold::Stage::kArmed || !Names(parts, hold.begin, hold.end) || !IsNamed(hold.thread)) return false;
  hold.stage = Hold::Stage::kHeld;
  hold.changed.notify_all();
  hold.changed.wait_for(lock, std::chrono::duration<double>(hold.limit_s), [] { return hold.stage.load() == Hold::Stage::kReleased; });
  return true;
}

bool Readable(const uint8_t* byte) {
  uint8_t copy;
  const iovec to{&copy, 1}, from{const_cast<uint8_t*>(byte), 1};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

// A call that has moved something before it came to memory that is gone is a success to the kernel.
bool StoppedAtAFault(std::span<const iovec> parts, size_t moved) {
  for (const iovec& part : parts) {
    if (moved < part.iov_len) return !Readable(static_cast<const uint8_t*>(part.iov_base) + moved);
    moved -= part.iov_len;
  }
  return false;
}

template <typename Call>
ssize_t Watched(std::span<const iovec> parts, const Call& call) {
  const bool held = HoldIfAsked(parts);
  const ssize_t result = call();
  const int error = errno;
  ++calls;
  if (result < 0 ? error == EFAULT : StoppedAtAFault(parts, static_cast<size_t>(result))) ++faults;
  if (held) {
    const std::lock_guard lock(hold.mutex);
    hold.stage = Hold::Stage::kDone;
    hold.changed.notify_all();
  }
  errno = error;
  return result;
}

template <typename Function>
Function* Next(const char* name) {
  void* const symbol = dlsym(RTLD_NEXT, name);
  R2CC_MUST(symbol != nullptr);
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace

uint64_t KernelFaults() { return faults; }
uint64_t KernelCalls() { return calls; }

HeldCall::HeldCall(std::span<const uint8_t> memory, std::string thread, double limit_s) {
  const std::lock_guard lock(hold.mutex);
  R2CC_MUST(hold.stage == Hold::Stage::kOff);
  hold.begin = memory.data();
  hold.end = memory.data() + memory.size();
  hold.thread = std::move(thread);
  hold.limit_s = limit_s;
  hold.stage = Hold::Stage::kArmed;
}

bool HeldCall::WaitUntilHeld() {
  std::unique_lock lock(hold.mutex);
  return hold.changed.wait_for(lock, kHeldWithin, [] { return hold.stage != Hold::Stage::kArmed; });
}

void HeldCall::Release() {
  std::unique_lock lock(hold.mutex);
  if (hold.stage == Hold::Stage::kHeld) {
    hold.stage = Hold::Stage::kReleased;
    hold.changed.notify_all();
  }
  hold.changed.wait(lock, [] { return hold.stage != Hold::Stage::kReleased; });
  hold.stage = Hold::Stage::kOff;
}

}  // namespace r2cc::plugin_test

using r2cc::plugin_test::Next;
using r2cc::plugin_test::Watched;

namespace {

template <typename Byte>
iovec Part(Byte* data, size_t bytes) {
  return {const_cast<void*>(static_cast<const void*>(data)), bytes};
}

std::span<const iovec> PartsOf(const msghdr* message) { return {message->msg_iov, message->msg_iovlen}; }

}  // namespace

extern "C" {

ssize_t recv(int fd, void* data, size_t bytes, int flags) {
  static auto* const next = Next<decltype(recv)>("recv");
  const iovec part = Part(data, bytes);
  return Watched({&part, 1}, [&] { return next(fd, data, bytes, flags); });
}

// recv() where the compiler knows how large the buffer is (_FORTIFY_SOURCE).
ssize_t __recv_chk(int fd, void* data, size_t bytes, size_t room, int flags) {
  if (bytes > room) abort();
  return recv(fd, data, bytes, flags);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static auto* const next = Next<decltype(recvmsg)>("recvmsg");
  return Watched(PartsOf(message), [&] { return next(fd, message, flags); });
}

ssize_t send(int fd, const void* data, size_t bytes, int flags) {
  static auto* const next = Next<decltype(send)>("send");
  const iovec part = Part(data, bytes);
  return Watched({&part, 1}, [&] { return next(fd, data, bytes, flags); });
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  static auto* const next = Next<decltype(sendmsg)>("sendmsg");
  return Watched(PartsOf(message), [&] { return next(fd, message, flags); });
}

}  // extern "C"
