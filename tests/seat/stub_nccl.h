// Of the stub of NCCL: what a program of one process with a thread for each rank needs.
#ifndef R2CC_TESTS_SEAT_STUB_NCCL_H_
#define R2CC_TESTS_SEAT_STUB_NCCL_H_

#include <cstddef>

#include "nccl/seams.h"

extern "C" {

// Communicators of `ranks` ranks, one for each.
void stub_begin(int ranks, r2cc::nccl::Comm* comms);
// How often the calling thread has reduced by a child.
int stub_reduced_by_children();
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
