// The daemon's end of the attach conversation (plan/page/attach.h), as far as the core sees it.
#ifndef R2CC_DAEMON_IO_ATTACH_SERVER_H_
#define R2CC_DAEMON_IO_ATTACH_SERVER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/core/rails_file.h"
#include "daemon/core/attach_access.h"
#include "daemon/core/job_process.h"
#include "plan/page/attach.h"
#include "plan/page/ring.h"

namespace r2cc::daemon {

// The core's answer to a job that wants to attach.
struct AttachDecision {
  std::string refused;            // one line; empty: accepted
  std::string node;               // this node's name
  std::vector<std::string> nics;  // for each rail its NIC, or ""
};

// The core's thread only; the callbacks come on it too.
class AttachServer {
 public:
  struct Callbacks {
    // A sound request of this release's version. An id is never used again.
    std::function<AttachDecision(JobId id, const JobProcess& process, const plan::AttachRequest& request)> on_attach;
    // Records in the order in which the job wrote them, checked one by one; `dropped`: how many it could not write.
    std::function<void(JobId id, const std::vector<plan::EvidenceRecord>& records, uint64_t dropped)> on_evidence;
    // The job's process ended, or left. After its last evidence.
    std::function<void(JobId id)> on_end;
  };

  virtual ~AttachServer() = default;
  virtual absl::Status Start(Callbacks callbacks) = 0;
  // Notifies all jobs that the page changed. A job that does not read is skipped: it looks later anyway.
  virtual void RingPageDoorbell() = 0;
  // Reads the rings, for jobs whose doorbell was lost.
  virtual void DrainRings() = 0;
  // Sets whose jobs may attach from now on. Jobs that are attached stay.
  virtual void SetAccess(const AttachAccess& access) = 0;
  // Publishes the rails that new jobs take if their users name none.
  virtual void OfferRails(const RailsFile& rails) = 0;
  virtual void Stop() = 0;
  // Connections and requests that were turned away.
  virtual uint64_t refused() const = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_ATTACH_SERVER_H_
