// What the test says to a process of the world, and what it hears: fixed packets on a SOCK_SEQPACKET pair. Both are of one build.
#ifndef R2CC_TESTS_CONTRACT_PROCESSES_PROTOCOL_H_
#define R2CC_TESTS_CONTRACT_PROCESSES_PROTOCOL_H_

#include <cstdint>

#include "plan/page/ring.h"
#include "tests/contract/world.h"

namespace r2cc::contract {

// The process finds them open.
constexpr int kCommandsFd = 3;
constexpr int kMemoryFd = 4;
constexpr int kNamespaceFd = 5;
// In its environment: what the rails of the other end are called, comma separated.
constexpr char kPeerRails[] = "CONTRACT_PEER_RAILS";
constexpr uint64_t kMemoryBytes = uint64_t{4} << 30;  // most of it never touched

constexpr int kFlowsMax = 12;
constexpr int kSizesKept = 64;
constexpr int kRecordsMax = 64;

struct Command {
  enum class Kind : uint32_t {
    kListen,        // flow; answered with a handle
    kConnect,       // flow, rail, handle; answered
    kRegister,      // offset in the memory, bytes: as NCCL does, before buffers there are used
    kSend,          // flow, offset in the memory, bytes
    kReceive,       // likewise
    kCloseSend,     // flow; answered when it has returned
    kCloseReceive,  // likewise
    kPublish,       // verdicts
    kLoseDaemon,
    kForkHolder,  // answered with the child's pid
    kPoll,        // answered with a Status
    kEnd,
  };
  Kind kind;
  int32_t flow;
  int32_t rail;
  int32_t verdict_count;
  uint64_t offset;
  uint64_t bytes;
  char handle[128];
  World::Verdict verdicts[2 * kRails];
};

struct Answer {
  bool ok;
  int32_t pid;
  char handle[128];
  char error[256];
};

struct FlowStatus {
  FlowState state;
  uint64_t done_through;
  uint64_t sizes[kSizesKept];  // of received messages, by number modulo kSizesKept
  char error[256];
};

struct Status {
  FlowStatus send[kFlowsMax];
  FlowStatus receive[kFlowsMax];
  uint64_t left_bytes[kRails];
  uint32_t record_count;
  plan::EvidenceRecord records[kRecordsMax];  // since the last Status
};

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_PROCESSES_PROTOCOL_H_
