// The three memfds of a producer: made by it, and found and opened by readers of the same user. They need no rendezvous: their names are in
// /proc/PID/fd. Opened memory is checked (seals, sizes, magic numbers, that the three belong together) before it is used.
#ifndef R2CC_OBSERVE_RING_RUN_MEMORY_H_
#define R2CC_OBSERVE_RING_RUN_MEMORY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observe/ring/control.h"

namespace r2cc::observe {

// Empty, or why it cannot name a run: 1 to 64 of letters, digits, '.', '_' and '-'.
std::string CheckRunName(std::string_view run);

class RunMemory {
 public:
  // `ring_bytes` is rounded up to a multiple of kRecordAlignment. Null and one line if the kernel refuses.
  static std::unique_ptr<RunMemory> Make(const std::string& run, uint32_t rank, uint64_t ring_bytes, std::string* error);
  // Opens the memory of another process, read-only but for the cursors; takes ownership of the descriptors. `cursors_fd` may be -1: no
  // reader can register.
  static std::unique_ptr<RunMemory> Open(int control_fd, int ring_fd, int cursors_fd, std::string* error);
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;

  ControlMemory* control() { return control_; }
  std::span<uint8_t> ring() { return {reinterpret_cast<uint8_t*>(ring_) + sizeof(RingStart), ring_memory_bytes_ - sizeof(RingStart)}; }
  CursorsMemory* cursors() { return cursors_; }
  std::string run() const;
  int control_fd() const { return control_fd_; }

 private:
  RunMemory() = default;

  int control_fd_ = -1, ring_fd_ = -1, cursors_fd_ = -1;
  ControlMemory* control_ = nullptr;
  RingStart* ring_ = nullptr;
  size_t ring_memory_bytes_ = 0;
  CursorsMemory* cursors_ = nullptr;
};

struct FoundRun {
  std::string run;
  uint32_t rank = 0;
  uint64_t id = 0;
  uint64_t producer_pid = 0;                           // as the memory states
  int holder_pid = 0;                                  // whose descriptors they are: the producer, or `r2cc-observe hold`
  int control_fd = -1, ring_fd = -1, cursors_fd = -1;  // their numbers there
};

// All producers of the user whose run is `run`, or all for "". Those that cannot be opened are left out. A producer that several processes
// hold is there once, by its own descriptors if it runs. `proc`: "/proc".
std::vector<FoundRun> FindRuns(const std::string& run, const std::string& proc);
std::unique_ptr<RunMemory> OpenFound(const FoundRun& found, const std::string& proc, std::string* error);

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RING_RUN_MEMORY_H_
