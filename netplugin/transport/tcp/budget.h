// How many bytes a rail's sockets hold, how many of them are used, and by how many threads. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_BUDGET_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_BUDGET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/core/clock.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {

// What is known of a link.
struct BudgetFacts {
  double rate_bytes_per_s = 0;  // while it is busy; 0: not known yet
  Nanos round_trip = 0;         // with its queues empty; 0: not known yet
  bool striped = false;         // chunks of all flows go to whichever link finishes first
  size_t sockets = SIZE_MAX;    // of the link
};

struct Budget {
  // How many of the sockets take chunks.
  size_t sockets;
  // Of each socket: how many bytes may wait, not sent yet, with the kernel and of chunks that leave together.
  uint32_t unsent_bytes;
  // Of each socket: how many bytes the kernel may hold, sent or not, until the peer has acknowledged them; 0: as many as it likes.
  uint64_t held_bytes;

  // How many bytes of chunks leave a socket with one call. Without workers as many as the queue has room for, which saves calls.
  uint32_t call_bytes(bool by_worker) const { return by_worker ? std::min(unsent_bytes, tuning::kCallBytesMost) : unsent_bytes; }
};

Budget BudgetOf(const BudgetFacts& facts);

// How many worker threads a job has that may use so many processors; they share them with NCCL's and the job's own threads.
int WorkersFor(int processors);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_BUDGET_H_
