// NCCL's own functions, by the names that NCCL keeps for a library that intercepts it (pnccl...). NCCL's library is never opened here,
// only found: a process that has none has nothing to intercept.
#ifndef R2CC_NCCL_LIBNCCL_H_
#define R2CC_NCCL_LIBNCCL_H_

#include <string>

#include "nccl/seams.h"

namespace r2cc::nccl {

// All functions that exports.cc intercepts. Null: this NCCL does not have it.
struct NcclCalls {
  Result (*get_version)(int*);
  Result (*get_unique_id)(UniqueId*);
  Result (*comm_init_rank)(Comm*, int, UniqueId, int);
  Result (*comm_init_rank_config)(Comm*, int, UniqueId, int, void*);
  Result (*comm_init_rank_scalable)(Comm*, int, int, int, UniqueId*, void*);  // since 2.23
  Result (*all_reduce)(const void*, void*, size_t, int, int, Comm, Stream);
  Result (*all_gather)(const void*, void*, size_t, int, Comm, Stream);
  Result (*reduce_scatter)(const void*, void*, size_t, int, int, Comm, Stream);
  Result (*reduce)(const void*, void*, size_t, int, int, int, Comm, Stream);
  Result (*broadcast)(const void*, void*, size_t, int, int, Comm, Stream);
  Result (*bcast)(void*, size_t, int, int, Comm, Stream);
  Result (*send)(const void*, size_t, int, int, Comm, Stream);
  Result (*recv)(void*, size_t, int, int, Comm, Stream);
  Result (*all_to_all)(const void*, void*, size_t, int, Comm, Stream);    // since 2.28
  Result (*gather)(const void*, void*, size_t, int, int, Comm, Stream);   // since 2.28
  Result (*scatter)(const void*, void*, size_t, int, int, Comm, Stream);  // since 2.28
  Result (*group_start)();
  Result (*group_end)();
  Result (*comm_count)(Comm, int*);
  Result (*comm_user_rank)(Comm, int*);
  Result (*comm_split)(Comm, int, int, Comm*, void*);    // since 2.18
  Result (*comm_register)(Comm, void*, size_t, void**);  // since 2.19
  Result (*comm_deregister)(Comm, void*);
  Result (*comm_finalize)(Comm);
  Result (*comm_destroy)(Comm);
  Result (*comm_abort)(Comm);
  Result (*comm_revoke)(Comm, int);  // since 2.28.7
  Result (*comm_get_async_error)(Comm, Result*);

  // The functions of it that this process has.
  void Find();
  // Empty: its children and counts can be relied on. Otherwise why not.
  std::string Unfit() const;
};

class Libnccl final : public Nccl {
 public:
  explicit Libnccl(const NcclCalls* calls) : calls_(*calls) {}
  Result AllReduce(const AllReduceCall& call, Comm comm) override;
  Result GroupStart() override { return calls_.group_start(); }
  Result GroupEnd() override { return calls_.group_end(); }
  Result Count(Comm comm, int* ranks) override { return calls_.comm_count(comm, ranks); }
  Result Rank(Comm comm, int* rank) override { return calls_.comm_user_rank(comm, rank); }
  Result Split(Comm comm, int key, Comm* child) override;
  Result SplitOff(Comm comm, int color, int key, Comm* child, void* config) override {
    return calls_.comm_split(comm, color, key, child, config);
  }
  Result Settle(Comm comm) override;
  Result Register(Comm comm, void* buffer, size_t bytes, void** handle) override {
    return calls_.comm_register(comm, buffer, bytes, handle);
  }
  Result Deregister(Comm comm, void* handle) override { return calls_.comm_deregister(comm, handle); }
  Result Finalize(Comm comm) override { return calls_.comm_finalize(comm); }
  Result Destroy(Comm comm) override { return calls_.comm_destroy(comm); }
  Result Abort(Comm parent, Comm child) override;
  Result Revoke(Comm comm, int flags) override { return calls_.comm_revoke(comm, flags); }
  Result AsyncError(Comm comm, Result* error) override { return calls_.comm_get_async_error(comm, error); }

 private:
  const NcclCalls& calls_;
};

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_LIBNCCL_H_
