// The times in which a job had fewer rails. Pure.
#ifndef R2CC_DAEMON_JOBS_REDUCED_RAILS_H_
#define R2CC_DAEMON_JOBS_REDUCED_RAILS_H_

#include <cstdint>

#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Spans that are kept of a process or a job. Beyond that, the two with the shortest time between them become one.
constexpr int kReducedMax = 256;

using ReducedList = google::protobuf::RepeatedPtrField<v1::ReducedRails>;

// A process sends over `usable` of `rails` rails from `when_ns` on, which is not before its last report.
void NoteUse(uint32_t usable, uint32_t rails, int64_t when_ns, ReducedList* list);

// Ends the span that lasts, at `end_ns`.
void EndReduced(int64_t end_ns, ReducedList* list);

// Adds another process's or node's list: at each moment the fewest usable rails of both count. An open span in either lasts until `now_ns`.
// Both may be anything: what makes no sense is left out.
void MergeReduced(const ReducedList& other, int64_t now_ns, ReducedList* list);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_REDUCED_RAILS_H_
