// The link probe: link events of the configured NICs become evidence. A NIC that is an address without an
// interface of its own is up from the start; of an InfiniBand port without one the sysfs probe speaks.
#ifndef R2CC_HEALTH_PROBE_LINK_PROBE_H_
#define R2CC_HEALTH_PROBE_LINK_PROBE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/core/clock.h"
#include "base/executor.h"
#include "health/evidence/nic_identity.h"
#include "health/io/link_watch.h"
#include "health/probe/sink.h"

namespace r2cc::health {

// A link that was down counts as up once it has stayed up for this time. Down is reported at once; up begins a longer proof anyway. So a
// port that flaps thousands of times a second is one piece of evidence that it is down, and not thousands of plans.
constexpr Nanos kLinkUpSettle = 20 * kNanosPerMs;
// Interval of the reports that a link comes up and does not last.
constexpr Nanos kBouncesInterval = kNanosPerSecond;

// Runs on the watch's executor.
class LinkProbe {
 public:
  // Called with a NIC's interface as the kernel shows it, before the evidence about it, if its MAC, MTU or index has changed.
  using FactSink = std::function<void(const std::string& nic, const LinkFact& fact)>;

  // `watch` and `executor` outlive the probe. `on_fact` may be empty.
  LinkProbe(std::string node, const std::vector<NicIdentity>& nics, LinkWatch* watch, Executor* executor, EvidenceSink sink,
            FactSink on_fact);

  ~LinkProbe();
  LinkProbe(const LinkProbe&) = delete;
  LinkProbe& operator=(const LinkProbe&) = delete;

  // Evidence about every NIC is in the sink when it returns OK.
  absl::Status Start();

  // One more NIC, after Start(): evidence about it is in the sink when this returns.
  void Add(const NicIdentity& nic);
  // Stops all reports about it.
  void Remove(const std::string& nic);

  // Looks at the links again: what the daemon does when somebody complains about a NIC.
  void Refresh();

  // Links that came up and went down again before they counted as up.
  uint64_t bounces() const { return bounces_; }

 private:
  struct Link {
    bool reported = false;  // anything
    bool up = false;        // as reported
    TimerId settling = 0;
    int64_t bounces = 0;  // not reported yet
    TimerId report_timer = 0;
    LinkFact fact;  // as reported
  };
  // True: it has an interface.
  bool Know(const NicIdentity& nic);
  void OnFact(const std::string& nic, const LinkFact& fact);
  // `present`: there is such an interface.
  void OnLink(const std::string& nic, bool up, bool present, const std::string& detail);
  void OnBounce(const std::string& nic);
  void OnFacts(const std::vector<LinkFact>& facts, bool complete);
  void Report(const std::string& nic, bool up, bool present, const std::string& detail);
  void Emit(const std::string& nic, EvidenceKind kind, int64_t value, const std::string& detail);

  const std::string node_;
  std::vector<std::string> addresses_;                         // NICs that are addresses without an interface
  std::multimap<std::string, std::string> nics_of_interface_;  // several addresses of one interface are several NICs
  LinkWatch* const watch_;
  Executor* const executor_;
  const EvidenceSink sink_;
  const FactSink on_fact_;
  std::map<std::string, Link> links_;           // by NIC
  std::map<std::string, LinkFact> interfaces_;  // all that there are
  uint64_t bounces_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_LINK_PROBE_H_
