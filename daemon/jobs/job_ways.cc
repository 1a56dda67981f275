#include "daemon/jobs/job_ways.h"

#include <iterator>

namespace r2cc::daemon {
namespace {

// By plan::Way.
constexpr const char* kWays[] = {"nccl", "tree", "collnet"};

}  // namespace

void NoteWay(const plan::EvidenceRecord& record, int64_t realtime_ns, v1::Job* job) {
  const auto way = static_cast<uint32_t>(record.replayed_bytes);
  if (way >= std::size(kWays)) return;
  v1::AllReduceWay* of = nullptr;
  for (v1::AllReduceWay& one : *job->mutable_ways())
    if (one.communicator() == record.incarnation) of = &one;
  if (of == nullptr) {
    if (job->ways_size() >= kJobWaysMax) return;
    of = job->add_ways();
    of->set_communicator(record.incarnation);
  }
  of->set_way(kWays[way]);
  of->set_call(record.bytes);
  of->set_since_ns(realtime_ns);
  of->set_bytes_min(record.duration_ns);
  of->set_expected_permille(static_cast<uint32_t>(record.replayed_bytes >> 32));
  of->set_changes(of->changes() + 1);
}

}  // namespace r2cc::daemon
