// Counts the faults that this process met, for the line at the end of the job. Any thread.
#ifndef R2CC_NETPLUGIN_TRANSPORT_JOB_TALLY_H_
#define R2CC_NETPLUGIN_TRANSPORT_JOB_TALLY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/core/mutex.h"
#include "netplugin/transport/page_view.h"
#include "plan/page/ring.h"

namespace r2cc::net {

class JobTally {
 public:
  void Began(Nanos now);
  struct Loss {
    uint16_t rail = 0;
    plan::EvidenceCause cause = plan::EvidenceCause::kNone;
    Nanos when = 0;
    // The NICs at both ends, as pages know them.
    std::string node, nic, peer_node, peer_nic;
  };
  // Links of one rail that are lost within a second count as one fault, as in the daemon.
  void Lost(const Loss& loss, Nanos now);
  // The page is this one. A fault all of whose losses may be an operator's, and one of them is, is none: as the daemon counts, which hears
  // of another node's operator as late as the page does.
  void Judge(const PageView& page, Nanos now);
  // The flows that the loss at `lost` held up are moving again; the longest gap in their progress was `stall`.
  void Passed(uint16_t rail, Nanos lost, Nanos stall);
  // From `when` on the process sends over `usable` of `rails` rails.
  void Use(uint32_t usable, uint32_t rails, Nanos when);
  // True if this failure is new.
  bool Failed(const std::string& peer, uint64_t failure);

  // "R2CC: 2 NIC faults survived, longest stall 0.28 s, 3 % of the run at 3/4 bandwidth; r2ccctl job report 123". `report`: the name for
  // that command. Empty: no rail was lost.
  std::string Line(const std::string& report, Nanos now) const;

 private:
  struct Fault {
    uint16_t rail = 0;
    Nanos when = 0;
    uint32_t links = 0;
    uint32_t passed = 0;
    bool taken = false;  // an operator took a NIC away, or R2CC_FAIL_RAILS
    bool real = false;   // a loss of it has a cause that no operator is
  };
  struct Undecided {
    Loss loss;
    Nanos last_received = 0;
  };
  Fault* Find(uint16_t rail, Nanos when) R2CC_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Nanos began_ R2CC_GUARDED_BY(mutex_) = 0;
  std::vector<Fault> faults_ R2CC_GUARDED_BY(mutex_);
  std::vector<Undecided> undecided_ R2CC_GUARDED_BY(mutex_);
  uint64_t faults_more_ R2CC_GUARDED_BY(mutex_) = 0;
  Nanos longest_ R2CC_GUARDED_BY(mutex_) = 0;
  std::map<std::pair<uint32_t, uint32_t>, Nanos> reduced_ R2CC_GUARDED_BY(mutex_);   // time by usable and all rails
  uint32_t usable_ R2CC_GUARDED_BY(mutex_) = 0, rails_ R2CC_GUARDED_BY(mutex_) = 0;  // now; equal: all
  Nanos since_ R2CC_GUARDED_BY(mutex_) = 0;
  std::set<std::pair<std::string, uint64_t>> failures_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_JOB_TALLY_H_
