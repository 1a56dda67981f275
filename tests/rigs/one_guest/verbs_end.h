// One end of a connected queue pair on a soft-RoCE device of the guest, both ends being in one process: what the rig's own programs share.
// A call that fails ends the process with a line: there is nothing to go on with.
#ifndef R2CC_TESTS_RIGS_ONE_GUEST_VERBS_END_H_
#define R2CC_TESTS_RIGS_ONE_GUEST_VERBS_END_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/core/verbs/verbs.h"

namespace r2cc::rig {

struct PairOptions {
  // What a queue pair does while its packets get no answer: 4.096 us times 2^timeout, retry_cnt times more.
  uint8_t timeout = 15;
  uint8_t retry_cnt = 6;
  uint32_t mtu_bytes = 1024;  // several packets for a small message; the devices have 4096
};

// Any thread, one at a time.
class VerbsEnd {
 public:
  static constexpr uint32_t kRequestsMax = 128;  // posted at a time, of sends and of receives

  // Opens the device and registers `bytes` of memory. No queue pair yet.
  VerbsEnd(verbs::Verbs* verbs, const std::string& device, size_t bytes);
  ~VerbsEnd();
  VerbsEnd(const VerbsEnd&) = delete;
  VerbsEnd& operator=(const VerbsEnd&) = delete;

  // A new queue pair for each end, with random first packet numbers, connected.
  static void Connect(VerbsEnd* one, VerbsEnd* other, const PairOptions& options);
  // Its completion queues go with it.
  void DestroyPair();
  // Somebody else destroyed it: the same without that.
  void PairIsDestroyed();

  // One more receive; its number counts from 1 for each queue pair.
  void PostReceive();
  // From the start of the own memory to the same place of the peer's, signaled. The errno value of the post.
  int Write(uint32_t bytes, bool with_immediate, uint32_t key_error = 0);
  // What has completed.
  std::vector<verbs::Completion> PollSends() { return Poll(sends_); }
  std::vector<verbs::Completion> PollReceives() { return Poll(receives_); }

  // Arm, poll once more, then wait: until something completes, or so long.
  void Arm();
  void WaitForCompletion(int timeout_ms);

  std::vector<uint8_t>& memory() { return memory_; }
  int async_fd() const { return async_fd_; }
  verbs::ContextId context() const { return context_; }
  verbs::DomainId domain() const { return domain_; }
  verbs::QueuePairId pair() const { return pair_.id; }
  verbs::CompletionQueueId receive_completions() const { return receives_; }
  uint64_t receives_posted() const { return receives_posted_; }

 private:
  void MakePair();
  std::vector<verbs::Completion> Poll(verbs::CompletionQueueId queue);

  verbs::Verbs* const verbs_;
  std::vector<uint8_t> memory_;
  verbs::ContextId context_{};
  int async_fd_ = -1;
  verbs::DomainId domain_{};
  verbs::MemoryRegion region_;
  verbs::CompletionChannelId channel_{};
  int channel_fd_ = -1;
  verbs::CompletionQueueId sends_{};
  verbs::CompletionQueueId receives_{};
  verbs::QueuePairInfo pair_;  // id 0: none
  const VerbsEnd* peer_ = nullptr;
  uint32_t psn_ = 0;
  uint64_t receives_posted_ = 0;
};

// The entry of the port's table that stands for an IPv4 address on RoCE v2.
verbs::GidEntry AddressOf(verbs::Verbs* verbs, verbs::ContextId context);

}  // namespace r2cc::rig

#endif  // R2CC_TESTS_RIGS_ONE_GUEST_VERBS_END_H_
