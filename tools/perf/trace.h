// Writes the trace of a rank: when each flow completed something. A trace measures stalls from outside the plugin.
//
// PREFIX.RANK.csv, opened for appending (the header is written into an empty file only), written at least every 100 ms while a collective
// runs:
//
//   kind,time_ns,rank,flow,bytes,wait_ns
//
//   kind       time_ns (CLOCK_MONOTONIC)  flow                       bytes            wait_ns
//   send,recv  of the completion          r0.c1.send.r2              of the message   time_ns - max(previous completion on this flow,
//                                         (rank 0, channel 1,                         moment at which it went from no outstanding
//                                         to rank 2; recv: from 2)                    request to one)
//   iteration  of its end                 running number, warm-up    algorithm bytes  its duration, from after the barrier
//                                         included                   (size column)
//   open       of the end of the run      as send,recv               0                as send,recv: a request is still outstanding
//
// So wait_ns is an interval in which the flow had a request outstanding and nothing completed. A run that is killed loses at most its last
// 100 ms.
#ifndef R2CC_TOOLS_PERF_TRACE_H_
#define R2CC_TOOLS_PERF_TRACE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "tools/perf/status.h"

namespace r2cc::perf {

// One thread at a time. Without Open() every call does nothing.
class Trace {
 public:
  static constexpr int64_t kFlushIntervalNs = 80'000'000;

  Trace() = default;
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  Status Open(const std::string& prefix, int rank);
  bool enabled() const { return fd_ >= 0; }

  void Add(std::string_view kind, int64_t time_ns, std::string_view flow, int64_t bytes, int64_t wait_ns);
  // Writes the buffer if the last write is long enough ago.
  void MaybeFlush(int64_t now_ns) {
    if (fd_ >= 0 && now_ns - flushed_ns_ >= kFlushIntervalNs) Flush(now_ns);
  }
  void Flush(int64_t now_ns);

 private:
  int fd_ = -1;
  int rank_ = 0;
  int64_t flushed_ns_ = 0;
  std::string buffer_;
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_TRACE_H_
