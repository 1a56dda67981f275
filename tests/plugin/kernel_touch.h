// What the kernel does with memory on behalf of sockets: recv, recvmsg, send and sendmsg of this program are these, for the plugin too,
// as a library's calls go to the program's symbols first. A kernel that is asked for memory that is gone ends no process, it says EFAULT.
#ifndef R2CC_TESTS_PLUGIN_KERNEL_TOUCH_H_
#define R2CC_TESTS_PLUGIN_KERNEL_TOUCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace r2cc::plugin_test {

// Calls so far that could not touch the memory that they named.
uint64_t KernelFaults();
// Calls so far.
uint64_t KernelCalls();

// Stops another thread on its way into the kernel, in the one moment at which a close that does not wait for it is seen for certain. One
// at a time.
class HeldCall {
 public:
  // The next call that names any of `memory`, of a thread whose name begins with `thread`, is held, and after `limit_s` let go in any case:
  // who waits for it goes on then.
  HeldCall(std::span<const uint8_t> memory, std::string thread, double limit_s = 1);
  ~HeldCall() { Release(); }
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;

  // True once a call is being held or was; false if none came for a minute.
  bool WaitUntilHeld();
  // When it returns the call has been made.
  void Release();
};

}  // namespace r2cc::plugin_test

#endif  // R2CC_TESTS_PLUGIN_KERNEL_TOUCH_H_
