// The operations of NCCL that faults held up, as profilers of jobs name them. Pure.
#ifndef R2CC_DAEMON_JOBS_HELD_OPERATIONS_H_
#define R2CC_DAEMON_JOBS_HELD_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "base/core/clock.h"
#include "plan/page/ring.h"
#include "proto/jobs.pb.h"

namespace r2cc::daemon {

// Operations that one fault keeps, of some 100 bytes each. A process names at most four for one stall.
constexpr int kHeldOperationsMax = 4;

// The contents of a kOperationHeld record. Nothing is trusted: names are cleaned, and times bounded.
v1::HeldOperation HeldOf(const plan::EvidenceRecord& record);
// The same for a value from another daemon or a file.
v1::HeldOperation CleanHeld(v1::HeldOperation held);
void CleanHeldOf(v1::Job::Fault* fault);

// Adds it to the longest of the fault, if there is a fault. One that is there already keeps its longest time.
void AddHeld(const v1::HeldOperation& held, v1::Job::Fault* fault);
void AddAllHeld(const v1::Job::Fault& from, v1::Job::Fault* to);

// "AllReduce 4711 of communicator tp0 (rank 3 of 8) for 280.0 ms"
std::string HeldText(const v1::HeldOperation& held);

// One event for each fault of a job on this node: its processes report one after another, so the first report waits for the others.
class HeldEvents {
 public:
  static constexpr Nanos kCollect = kNanosPerSecond;
  static constexpr size_t kFaultsMax = 256;

  struct Fault {
    uint32_t uid = 0;
    std::string job;
    std::string rail;  // the NIC, or the rail where none is matched
    Nanos lost = 0;
    int32_t pid = 0;  // of the process that waited longest
    v1::HeldOperation longest;
    uint32_t operations = 0;
    Nanos first = 0;         // report
    std::string share = {};  // JobProcess::share
  };
  void Note(const Fault& report, Nanos now);
  // Those that have collected for long enough.
  std::vector<Fault> TakeDue(Nanos now);

 private:
  std::vector<Fault> faults_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_JOBS_HELD_OPERATIONS_H_
