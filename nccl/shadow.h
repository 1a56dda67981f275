// One communicator of the program, the parent, and the child that may do its AllReduces. All that is decided is decided by ShadowMachine.
//
// Every `every` counted calls is a boundary. There the shadow reads the vector whose AllReduce it enqueued at the boundary before, and
// enqueues the next one on the same stream. A call is counted if it is an AllReduce with one of NCCL's own operators, in no group and in no
// capture: only such calls come in the same number on all ranks and may wait or split. All others go to the parent.
//
// While the child is in use, what the program enqueues for the parent on another stream waits for it, and the other way around: NCCL orders
// what it does for one communicator, and there are two now.
//
// Before the first boundary enqueues anything, CallRoll() proves that all ranks will come to it: a rank without this library would not.
//
// Threads: the one that uses the communicator. Abort(), TakeChild() and AsyncError() from any, at any time.
#ifndef R2CC_NCCL_SHADOW_H_
#define R2CC_NCCL_SHADOW_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/mutex.h"
#include "nccl/seams.h"
#include "nccl/shadow_machine.h"

namespace r2cc::nccl {

// The parts that all shadows of a process share.
struct Parts {
  Nccl* nccl = nullptr;
  Cuda* cuda = nullptr;
  Rails* rails = nullptr;
  RollCalls* rolls = nullptr;
  LogLine log;
  LogLine debug;  // each vector; null: none
  uint32_t every = 256;
  uint64_t collnet_min_bytes = 0;  // R2CC_COLLNET_MIN_BYTES; 0: not set
};

// Fewer ranks are fewer nodes, and among those there is no better seat.
constexpr int kRanksLeast = 3;

// Why a rank has not checked in for a communicator.
enum class NoRoll : uint8_t {
  kNotFollowed,  // it was begun by none of the functions that allow it
  kNoMaker,      // the process that made its ID has written no address, or does not answer
};

class Shadow {
 public:
  // `number`: of the communicator, for people. `roll`: null if this rank has not checked in, and `no_roll` is why.
  Shadow(const Parts& parts, Comm parent, uint32_t number, std::shared_ptr<RollCall> roll, NoRoll no_roll);
  // Frees what is the shadow's own. The child is TakeChild()'s caller's.
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  Result AllReduce(const AllReduceCall& call, bool in_group);

  // Around all other operations that the program enqueues for the parent, and after an AllReduce in a group at the group's end.
  void Before(Stream stream);
  void After(Stream stream);

  Result Register(void* buffer, size_t bytes, void** handle);
  Result Deregister(void* handle);

  // The parent's error, else the child's.
  Result AsyncError(Result* error);
  // Without a child from now on; null: there is none. The caller ends it.
  Comm TakeChild();
  // Kernels may still write into what is the shadow's own: it is not freed.
  void LeaveMemory() { leaves_memory_ = true; }

  // For tests.
  const ShadowMachine& machine() const { return machine_; }
  uint32_t number() const { return number_; }

 private:
  struct Registration {
    void* buffer;
    size_t bytes;
    void* with_child;  // null: not registered there
  };

  bool IsCounted(const AllReduceCall& call, bool in_group);
  Result Boundary(Stream stream);
  // At the first boundary: whether all ranks will come to it.
  Result CallRoll();
  Result ReadVector(Stream stream);
  Result BeginVector(Stream stream);
  void Make(Stream stream);
  Result ByCollNet(const AllReduceCall& call);
  void Drop();
  Comm child();
  // By another thread, while this one waited: NCCL has freed the communicator.
  bool HasEnded();
  // The agreement waits for a rank; on every rank that waits.
  void LogLate();
  void Log(const std::string& line);
  std::string Describe(const Vector& vector) const;
  void Report(const plan::WayDecision& decision);

  const Parts& parts_;
  const Comm parent_;
  const uint32_t number_;
  int ranks_ = 0;
  int rank_ = -1;
  bool is_alone_ = false;  // nothing is ever counted
  const std::shared_ptr<RollCall> roll_;
  const NoRoll no_roll_;
  bool is_complete_ = false;  // all ranks have this library
  uint64_t calls_ = 0;
  ShadowMachine machine_;
  Vector vector_;  // the last one

  uint32_t* words_ = nullptr;  // of the vector
  Event vector_done_ = nullptr;
  bool vector_pending_ = false;
  bool leaves_memory_ = false;

  Event order_ = nullptr;  // after what was enqueued last
  Stream last_ = nullptr;  // and where
  bool ordered_ = false;   // both are valid

  std::vector<uint32_t> child_order_;  // of the child that is there
  uint32_t ready_for_ = 0;             // the machine's number of a child that is there, or of CollNet that can be used
  uint64_t tuner_number_ = 0;          // of the parent; 0: the tuner has not identified it, or NCCL does not offer it CollNet

  Mutex mutex_;  // also keeps a child that is called from being taken meanwhile
  Comm child_ R2CC_GUARDED_BY(mutex_) = nullptr;
  bool ended_ R2CC_GUARDED_BY(mutex_) = false;  // by TakeChild()
  std::map<void*, Registration> registrations_ R2CC_GUARDED_BY(mutex_);
};

// An operation of `count` elements.
uint64_t BytesOf(DataType type, size_t count);

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_SHADOW_H_
