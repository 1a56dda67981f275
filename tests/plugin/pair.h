// A flow between two ends in one process, as two GPUs of one job have it: what NCCL does with a connection, and a check of every byte.
#ifndef R2CC_TESTS_PLUGIN_PAIR_H_
#define R2CC_TESTS_PLUGIN_PAIR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tests/plugin/net_table.h"

namespace r2cc::plugin_test {

// Everything that should take a moment ends within this, also on a busy machine.
constexpr double kLimitS = 60;

// Memory of whole pages that is gone at once when it is given back: a late touch ends the process, unless it is the kernel's, which gets
// EFAULT.
class Pages {
 public:
  explicit Pages(size_t bytes);
  ~Pages() { Free(); }
  Pages(Pages&& other) noexcept;
  Pages(const Pages&) = delete;
  void Free();
  // Give it back, too, but nobody else gets its place before Free(). A touch is as above, ...
  void Forbid();
  // ... or, as somebody else has it now, leaves what Untouched() sees.
  void Reuse();
  bool Untouched() const;
  uint8_t* data() { return data_; }
  size_t size() const { return bytes_; }

 private:
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
};

// What byte `index` of message `number` is.
inline uint8_t PatternAt(uint64_t number, size_t index) {
  return static_cast<uint8_t>((number * 0x9e3779b97f4a7c15ULL + index * 0x2545f4914f6cdd1dULL) >> 56);
}
void FillPattern(uint64_t number, std::span<uint8_t> out);
bool HoldsPattern(uint64_t number, std::span<const uint8_t> bytes);

struct Pair {
  Net* net = nullptr;
  void* send_comm = nullptr;
  void* recv_comm = nullptr;

  // `limit_s` for the connection. The listener is closed again, as NCCL does.
  static Pair Open(Net* net, void* context, int device, double limit_s = kLimitS);
  void Close();

  // Requests; they are tried again while the plugin asks for it.
  void* Send(void* data, size_t bytes, void* mhandle = nullptr);
  void* Receive(void* data, size_t bytes, void* mhandle = nullptr);
  // One message of `bytes` into a buffer of `capacity`, checked.
  void Transfer(uint64_t number, size_t bytes, size_t capacity);
};

// Waits for a request. -1 if the plugin gives an error, else the size that it tells.
int Finish(Net* net, void* request, double limit_s = kLimitS);

}  // namespace r2cc::plugin_test

#endif  // R2CC_TESTS_PLUGIN_PAIR_H_
