// By which way the AllReduces of a process's communicators go, from its records. Pure.
#ifndef R2CC_DAEMON_JOBS_JOB_WAYS_H_
#define R2CC_DAEMON_JOBS_JOB_WAYS_H_

#include <cstdint>

#include "plan/page/ring.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Communicators of a process whose AllReduce way is kept.
constexpr int kJobWaysMax = 64;

// `record` is a kWay. A way of a later release, and a communicator beyond kJobWaysMax, changes nothing.
void NoteWay(const plan::EvidenceRecord& record, int64_t realtime_ns, v1::Job* job);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_JOB_WAYS_H_
