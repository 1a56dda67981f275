// Of the stub of NCCL: what a program of one process with a thread for each rank needs.
#ifndef R2CC_TESTS_SEAT_STUB_NCCL_H_
#define R2CC_TESTS_SEAT_STUB_NCCL_H_

#include <cstddef>

#include "nccl/seams.h"

extern "C" {

r2cc::nccl::Result ncclGetUniqueId(r2cc::nccl::UniqueId* id);
r2cc::nccl::Result ncclCommInitRank(r2cc::nccl::Comm* comm, int ranks, r2cc::nccl::UniqueId id, int rank);
r2cc::nccl::Result pncclCommInitRank(r2cc::nccl::Comm* comm, int ranks, r2cc::nccl::UniqueId id, int rank);
// A program gives a configuration: so its children are told from those that libr2cc-nccl.so makes.
r2cc::nccl::Result ncclCommSplit(r2cc::nccl::Comm comm, int color, int key, r2cc::nccl::Comm* child, void* config);
r2cc::nccl::Result pncclCommSplit(r2cc::nccl::Comm comm, int color, int key, r2cc::nccl::Comm* child, void* config);
// How often the calling thread has reduced by a child, or by CollNet.
int stub_redirected();
// Ranks have called different operations: nothing that comes afterwards ends.
int stub_hangs();
// What NCCL asks before each AllReduce: whether it takes CollNet.
void stub_set_tuner(int (*takes_collnet)());
// Communicators that were made and not ended, children too.
int stub_alive();

r2cc::nccl::Result ncclAllReduce(const void* send, void* receive, size_t count, int type, int operation, r2cc::nccl::Comm comm,
                                 r2cc::nccl::Stream stream);
r2cc::nccl::Result ncclAllGather(const void* send, void* receive, size_t count, int type, r2cc::nccl::Comm comm, r2cc::nccl::Stream stream);
r2cc::nccl::Result ncclGroupStart();
r2cc::nccl::Result ncclGroupEnd();
r2cc::nccl::Result ncclCommDestroy(r2cc::nccl::Comm comm);
r2cc::nccl::Result ncclCommGetAsyncError(r2cc::nccl::Comm comm, r2cc::nccl::Result* error);

}  // extern "C"

#endif  // R2CC_TESTS_SEAT_STUB_NCCL_H_
