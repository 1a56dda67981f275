// The interfaces that the interposer uses: NCCL beneath it, the CUDA driver, and R2CC's plugin and tuner in the same process. Interfaces
// are narrow, so that the same code runs over a fake of each. Nothing is thrown.
#ifndef R2CC_NCCL_SEAMS_H_
#define R2CC_NCCL_SEAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "nccl/roll.h"
#include "nccl/unique_id.h"
#include "netplugin/abi/nccl_types.h"
#include "plan/collective/ways.h"

namespace r2cc::nccl {

using abi::DataType;
using abi::Result;

// ncclComm_t and cudaStream_t.
using Comm = struct ncclComm*;
using Stream = struct CUstream_st*;
using Event = struct CUevent_st*;

struct AllReduceCall {
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  DataType type = DataType::kInt8;
  int operation = 0;  // ncclRedOp_t, with the program's own operators
  Stream stream = nullptr;
};

// NCCL's functions, with its results.
class Nccl {
 public:
  virtual ~Nccl() = default;
  virtual Result AllReduce(const AllReduceCall& call, Comm comm) = 0;
  virtual Result GroupStart() = 0;
  virtual Result GroupEnd() = 0;
  virtual Result Count(Comm comm, int* ranks) = 0;
  virtual Result Rank(Comm comm, int* rank) = 0;
  // All ranks into one child, by key. MAY BLOCK until all ranks are here; when it returns the child is whole, also where `comm` does not
  // block.
  virtual Result Split(Comm comm, int key, Comm* child) = 0;
  // By the program; the configuration is NCCL's.
  virtual Result SplitOff(Comm comm, int color, int key, Comm* child, void* config) = 0;
  // Waits until what a call that was in progress began is under way. MAY BLOCK.
  virtual Result Settle(Comm comm) = 0;
  virtual Result Register(Comm comm, void* buffer, size_t bytes, void** handle) = 0;
  virtual Result Deregister(Comm comm, void* handle) = 0;
  virtual Result Finalize(Comm comm) = 0;
  virtual Result Destroy(Comm comm) = 0;
  // Both at the same time, as kernels of the one may wait behind kernels of the other; `child` may be null. The parent's result.
  virtual Result Abort(Comm parent, Comm child) = 0;
  virtual Result Revoke(Comm comm, int flags) = 0;
  virtual Result AsyncError(Comm comm, Result* error) = 0;
};

// The CUDA driver, in the calling thread's context. False: it failed.
class Cuda {
 public:
  virtual ~Cuda() = default;
  // True also if the driver does not know: a captured stream must not be touched.
  virtual bool IsCaptured(Stream stream) = 0;
  virtual bool MakeEvent(Event* event) = 0;
  virtual bool Record(Event event, Stream stream) = 0;
  // Later work on the stream waits for the event.
  virtual bool Wait(Stream stream, Event event) = 0;
  // MAY BLOCK. `is_late` is called once if it blocks for long.
  virtual bool Finish(Event event, const std::function<void()>& is_late) = 0;
  virtual bool Finish(Stream stream) = 0;
  // Memory of the host that kernels can read and write. Null: there is none.
  virtual uint32_t* AllocateWords(size_t words) = 0;
  // Nothing uses any of them any more.
  virtual void Free(Event event) = 0;
  virtual void FreeWords(uint32_t* words) = 0;
  virtual uint64_t FreeBytes() = 0;
};

// R2CC's plugin and tuner in this process, by their symbols.
class Rails {
 public:
  virtual ~Rails() = default;
  struct State {
    bool is_there = false;  // both of them
    uint64_t node_key = 0;
    uint32_t kept_permille = 1000;
    uint32_t rails = 0;
    uint64_t bytes_per_s = 0;  // of the node, lost rails too; 0: not known
    bool offers_collnet = false;
  };
  virtual State Look() = 0;
  // Between the two a child of this many ranks is made. MarkChild() is true if the tuner has seen one communicator of that size begin,
  // which uses the tree from then on; none or several, and nothing changes.
  virtual void WatchForChild(size_t ranks) = 0;
  virtual bool MarkChild() = 0;
  // Between the two a communicator does one AllReduce of this many bytes. WatchedCommunicator() is the tuner's number for it; 0 if NCCL
  // does not offer it CollNet, or if the tuner has seen several of that size.
  virtual void WatchAllReduce(size_t bytes) = 0;
  virtual uint64_t WatchedCommunicator() = 0;
  // The AllReduces of the communicator with that number go that way from then on. False: it has ended.
  virtual bool SetWay(uint64_t number, plan::Way way) = 0;
  // For people: this communicator goes that way since `call`.
  virtual void Report(uint32_t communicator, uint64_t call, const plan::WayDecision& decision) = 0;
};

// One communicator's: whether all its ranks have this library. Destroyed with the communicator.
class RollCall {
 public:
  virtual ~RollCall() = default;
  // After the communicator has begun on all ranks. Keeps what is decided already, so that Await() need not reach a process that may have
  // ended by then. MAY BLOCK for four seconds.
  virtual void Ask() = 0;
  // MAY BLOCK until it is decided, for all ranks alike. Its kind is none if this rank cannot learn it, or End() came first.
  virtual Verdict Await() = 0;
  // From any thread: nobody waits any longer.
  virtual void End() = 0;
};

class RollCalls {
 public:
  virtual ~RollCalls() = default;
  // Takes a communicator's ID that this process has just made: other ranks will find the process that decides in it.
  virtual void Note(UniqueId* id) = 0;
  // Before this rank begins the communicator. Null: it sent nothing, so the verdict is not that all ranks are there.
  virtual std::shared_ptr<RollCall> CheckIn(const UniqueId& id, int ranks, int rank) = 0;
  // For a communicator that the program has split off; `number`: the number of the split, equal on all ranks.
  virtual std::shared_ptr<RollCall> CheckInSplit(const RollCall& parent, uint32_t number, int color, int ranks, int rank) = 0;
};

using LogLine = std::function<void(const std::string& line)>;

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_SEAMS_H_
