// A libibverbs.so.1 with one device that records calls: only for libibverbs_test.cc.
#ifndef R2CC_BASE_CORE_VERBS_STUB_LIBIBVERBS_H_
#define R2CC_BASE_CORE_VERBS_STUB_LIBIBVERBS_H_

#include <infiniband/verbs.h>

namespace r2cc::verbs {

// The library's own, found there by the name "stub". The test and the library are apart: nothing in it is allocated.
struct Stub {
  static constexpr int kKept = 64;

  // The results of the next calls.
  int error = 0;             // of calls that return a number; of those that return an object: 0 or errno
  int post_error = 0;        // of the posting calls
  int post_refused = -1;     // which request of the list they name as bad; -1: none
  int completions = 0;       // how many a poll finds; less than 0: it fails
  ibv_wc found[kKept] = {};  // these, again and again
  ibv_async_event event = {};
  ibv_gid_entry gids[4] = {};
  int gid_count = 0;
  int completion_events = 0;

  // The calls that were made.
  int doorbells = 0;
  int requests = 0;  // posted, sends and receives
  ibv_send_wr sends[kKept] = {};
  ibv_sge segments[kKept] = {};  // the first of each send
  ibv_recv_wr receives[kKept] = {};
  ibv_qp_attr attributes = {};
  int mask = 0;
  ibv_qp_init_attr limits = {};
  unsigned access = 0;
  bool iova = false;  // by ibv_reg_mr_iova2
  ibv_async_event acknowledged = {};
  int events_acknowledged = 0;
  int lists = 0;     // of devices, not freed
  int contexts = 0;  // open
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_STUB_LIBIBVERBS_H_
