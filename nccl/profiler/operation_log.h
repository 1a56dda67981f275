// The operations of a process's communicators, and which of them were outstanding on the network in a given time. Pure.
//
// An operation is outstanding from the first begin of a part of it to the last end. A part is what one channel moves to or from one peer.
// NCCL enqueues operations long before their parts begin; one that has no parts does not use the network, and never is outstanding.
#ifndef R2CC_NCCL_PROFILER_OPERATION_LOG_H_
#define R2CC_NCCL_PROFILER_OPERATION_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/abi/profile_v1.h"

namespace r2cc::profiler {

// Names an operation for ever. 0: none.
using OperationId = uint64_t;

class OperationLog {
 public:
  // Enqueued operations that are kept, 96 bytes each: NCCL enqueues some 1,000 of a communicator ahead of the network. Of older ones
  // nothing is known any more, and their ids are of no use.
  static constexpr size_t kMost = 8192;
  static constexpr int kNoPeer = -1;

  // `first`: the first id. Other processes of the node should have others.
  explicit OperationLog(OperationId first) : next_(first == 0 ? 1 : first), slots_(kMost) {}

  struct Communicator {
    uint64_t id = 0;
    std::string name;
    int32_t rank = 0;
    int32_t ranks = 0;  // 0: not known
  };
  // A communicator begins. Its number here.
  uint64_t Open(Communicator communicator);
  void Close(uint64_t communicator);
  // Null: it is closed, or never was.
  Communicator* Find(uint64_t communicator);

  // An operation is enqueued. `function`: null or cut where it is too long. `number`: from 1; 0: none. `peer`: of a send or receive.
  OperationId Begin(uint64_t communicator, const char* function, uint32_t number, int peer);
  // False: nothing is known of the operation.
  bool BeginPart(OperationId operation, Nanos now);
  void EndPart(OperationId operation, Nanos now);

  // The operations that were outstanding for at least half of the time, the longest first, and then the first. If some of communicator `id`
  // are among them, these alone: a child that shares its parent's connections has another id than they. How many.
  size_t HeldOperations(uint64_t id, Nanos begun, Nanos ended, std::span<abi::HeldOperationV1> held) const;

 private:
  struct Slot {
    OperationId id = 0;
    uint64_t communicator = 0;
    Nanos begun = 0;  // 0: no part has
    Nanos ended = 0;  // of the last part that ended
    uint32_t parts = 0;
    uint32_t number = 0;
    int peer = kNoPeer;
    char function[sizeof(abi::HeldOperationV1::function)] = {};
  };
  Slot* At(OperationId operation);

  std::map<uint64_t, Communicator> communicators_;
  uint64_t opened_ = 0;
  OperationId next_;
  std::vector<Slot> slots_;
};

}  // namespace r2cc::profiler

#endif  // R2CC_NCCL_PROFILER_OPERATION_LOG_H_
