// Locates a fault: from the matrix of rail probes to one verdict per NIC. A pure function.
//
// Ports are points, pairs that are probed are lines between them. A port is the NIC, its cable and its switch port, which cannot be
// distinguished from outside. The fewest faults that explain the silence win:
//  - a port that answers on any pair is not dead; silence between two such ports is the path between them;
//  - a port that answers on none, and is silent to two nodes or more that do answer others, is dead;
//  - a port that its own daemon has found to be dead is dead, and explains all silence around it;
//  - a pair that cannot be compared with another one stays undecided, except on a direct cable: there it is the cable.
#ifndef R2CC_HEALTH_VIEW_LOCALISE_H_
#define R2CC_HEALTH_VIEW_LOCALISE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "health/evidence/evidence.h"
#include "health/evidence/large_loss.h"
#include "health/evidence/pair_state.h"

namespace r2cc::health {

// The state of each pair, and the ports that need no verdict. The verdicts of a pair's two ends are joined: it is silent if either end
// reports so, because a fault is reported at once and its end is proved first.
class ProbeMatrix {
 public:
  void Add(const NicKey& a, const NicKey& b, PairVerdict verdict);
  // Its own kernel or the operator states that it is down: that explains all silence around it.
  void AddDown(const NicKey& nic) { down_.insert(nic); }
  // Its own daemon reports that its port is dead. Earlier answers to others prove nothing now.
  void AddDead(const NicKey& nic) { dead_.insert(nic); }
  // The two are joined by a cable without a switch.
  void AddCable(const NicKey& a, const NicKey& b);

  using Verdicts = std::map<NicKey, PairVerdict>;  // by the other end
  const Verdicts& Of(const NicKey& nic) const;
  bool IsDown(const NicKey& nic) const { return down_.contains(nic); }
  bool ReportsItselfDead(const NicKey& nic) const { return dead_.contains(nic); }
  bool IsCable(const NicKey& a, const NicKey& b) const { return cables_.contains({a, b}); }
  const std::map<NicKey, Verdicts>& all() const { return verdicts_; }

 private:
  std::map<NicKey, Verdicts> verdicts_;
  std::set<NicKey> down_;
  std::set<NicKey> dead_;
  std::set<std::pair<NicKey, NicKey>> cables_;  // both ways
};

enum class FaultKind : uint8_t {
  kNone,          // nothing is wrong with the NIC
  kPort,          // the NIC, its cable or its switch port
  kPath,          // the paths to `peers` only: it and they answer others
  kPeers,         // it is silent to `peers`, which are at fault
  kCable,         // the direct cable to peers[0], or what is at its ends
  kRail,          // no pair of the whole rail answers: its switch, or several ports
  kInconclusive,  // silent to `peers`; `missing` names what would decide
};

const char* FaultKindName(FaultKind kind);

// Whether `kind` locates a fault more closely than `before`: more answers, or their lack, have come since.
bool IsSharper(FaultKind kind, FaultKind before);

struct Fault {
  FaultKind kind = FaultKind::kNone;
  std::vector<NicKey> peers;      // what it is silent to and that concerns it, in order
  std::vector<NicKey> auxiliary;  // the NICs that distinguished the two ends, in order
  std::string missing;            // of kInconclusive
  // The NIC carries nothing, wherever the fault is: none of its pairs answers, though two nodes or more (one on a direct cable) could.
  bool unusable = false;

  friend bool operator==(const Fault&, const Fault&) = default;
};

Fault Localise(const ProbeMatrix& matrix, const NicKey& nic);

// One line for a person: "port of n1/rail2 (NIC, cable or switch port): silent to n0/rail2, n2/rail2, which answer each other".
std::string FaultText(const NicKey& nic, const Fault& fault);

// A fault in the matrix of large packets, and what one pair that it concerns loses.
struct LargeFault {
  Fault fault;
  LargeLoss loss;
};

// The same for a fault in the matrix of large packets; `loss`: of a pair of `nic` that loses them: "packets over 1500 bytes are lost
// between n0/rail1 and n1/rail1; small ones pass".
std::string LargeFaultText(const NicKey& nic, const Fault& fault, const LargeLoss& loss);

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_LOCALISE_H_
