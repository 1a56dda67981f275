// NCCL's functions as the program calls them, with a Shadow for each communicator that has reduced something. A function that is not here
// goes to NCCL untouched. A communicator that none of the functions here has begun gets no seat.
//
// NCCL calls its own public functions as well: ncclCommGetAsyncError within each call that wants the communicator ready, ncclBroadcast
// within ncclBcast. The loader brings these calls here like a program's. They go straight to NCCL, because this class may hold a lock.
//
// Threads: any, as NCCL allows. Groups belong to the calling thread.
#ifndef R2CC_NCCL_INTERPOSER_H_
#define R2CC_NCCL_INTERPOSER_H_

#include <memory>
#include <unordered_map>
#include <utility>

#include "base/core/mutex.h"
#include "nccl/seams.h"
#include "nccl/shadow.h"

namespace r2cc::nccl {

class Interposer {
 public:
  explicit Interposer(Parts parts) : parts_(std::move(parts)) {}
  Interposer(const Interposer&) = delete;
  Interposer& operator=(const Interposer&) = delete;

  // `make` and `begin` are NCCL's functions with their arguments.
  template <typename Make>
  Result MakeId(UniqueId* id, Make make) {
    const Inside inside;
    if (inside.is_nested() || id == nullptr) return make();
    *id = {};
    const Result result = make();
    if (result == Result::kSuccess) parts_.rolls->Note(id);
    return result;
  }
  template <typename Begin>
  Result Init(const UniqueId& id, int ranks, int rank, const Comm* comm, Begin begin) {
    const Inside inside;
    if (inside.is_nested() || comm == nullptr) return begin();
    std::shared_ptr<RollCall> roll = ranks < kRanksLeast ? nullptr : parts_.rolls->CheckIn(id, ranks, rank);
    return Begun(*comm, std::move(roll), begin());
  }
  // `comm` is where NCCL puts the communicator, with this result. `roll`: null if this rank has not checked in, and `no_roll` is why.
  Result Begun(const Comm& comm, std::shared_ptr<RollCall> roll, Result result, NoRoll no_roll = NoRoll::kNoMaker);
  Result Split(Comm comm, int color, int key, Comm* child, void* config);

  Result AllReduce(const AllReduceCall& call, Comm comm);
  // Any other operation; `enqueue` is NCCL's function with its arguments.
  template <typename Enqueue>
  Result Other(Comm comm, Stream stream, Enqueue enqueue) {
    const Inside inside;
    if (inside.is_nested()) return enqueue();
    const std::shared_ptr<Shadow> shadow = Find(comm);
    if (shadow != nullptr) shadow->Before(stream);
    return Enqueued(shadow, comm, stream, enqueue());
  }
  Result GroupStart();
  Result GroupEnd();

  Result Register(Comm comm, void* buffer, size_t bytes, void** handle);
  Result Deregister(Comm comm, void* handle);
  Result AsyncError(Comm comm, Result* error);

  Result Finalize(Comm comm);
  Result Destroy(Comm comm);
  Result Abort(Comm comm);
  Result Revoke(Comm comm, int flags);

  // For tests; null: it has reduced nothing.
  std::shared_ptr<Shadow> Find(Comm comm);

 private:
  // The calling thread is in one of the functions above, and comes into no second one.
  class Inside {
   public:
    Inside() : is_nested_(std::exchange(is_inside_, true)) {}
    ~Inside() { is_inside_ = is_nested_; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    bool is_nested() const { return is_nested_; }

   private:
    static thread_local bool is_inside_;
    const bool is_nested_;
  };

  struct Known {
    std::shared_ptr<RollCall> roll;  // null: this rank has not checked in
    NoRoll no_roll = NoRoll::kNotFollowed;
    std::shared_ptr<Shadow> shadow;  // null: it has reduced nothing
    uint32_t splits = 0;
  };

  std::shared_ptr<Shadow> FindOrMake(Comm comm);
  std::shared_ptr<Shadow> Take(Comm comm);
  // After() follows the enqueued call, in a group at its end.
  Result Enqueued(const std::shared_ptr<Shadow>& shadow, Comm comm, Stream stream, Result result);

  const Parts parts_;
  Mutex mutex_;
  uint32_t made_ R2CC_GUARDED_BY(mutex_) = 0;
  std::unordered_map<Comm, Known> known_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_INTERPOSER_H_
