// The faults of the simulated world, and their injection: at a time, or at a moment of a link's life.
#ifndef R2CC_TESTS_SIM_FAULTS_H_
#define R2CC_TESTS_SIM_FAULTS_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/sim/daemons.h"
#include "tests/sim/fault_kind.h"
#include "tests/sim/network.h"
#include "tests/sim/process.h"
#include "tests/sim/rail_faults.h"
#include "tests/sim/runs.h"

namespace r2cc::sim {

struct Fault {
  FaultKind kind = FaultKind::kPause;
  Nanos at = 0;
  std::optional<Moment> moment;  // instead: at the `countdown`th such moment after `at`
  int countdown = 1;
  Nanos duration = 0;
  int a = 0, b = 0;  // processes
  int rail_a = 0, rail_b = 0;
  int degree = 0;  // of gray: the divisor; of a reset: which ends; of a flap: how often
};

class Faults {
 public:
  struct World {
    Network* network;
    std::vector<Process*> processes;
    const Runs* runs;   // of these
    RailFaults* rails;  // null: rails are the network's own
    Daemons* daemons;   // null: there are none
    std::function<void(int host)> abort;
    std::function<void()> changed;  // what passes may have changed
    std::function<void(const std::string&)> log;
  };
  explicit Faults(World world) : world_(std::move(world)) {}
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  void Plan(const Fault& fault);
  // It hears of its kernel how its rails are.
  void Begun(Process* process) const;
  // From the tap.
  void At(Moment moment, int sender, int receiver, net::LinkId link);

  // Faults that wait for a moment count as over when the job is: see Disarm().
  bool healed() const { return active_ == 0; }
  Nanos last_healed() const { return last_healed_; }
  void Disarm() { armed_.clear(); }
  const std::vector<int>& injected() const { return injected_; }  // by kind
  bool gone(int host) const { return gone_.contains(host); }
  // Processes that died while their hosts live, and when.
  const std::map<int, Nanos>& deaths() const { return deaths_; }
  // Since when the process cannot end links; 0: it can.
  Nanos cannot_close_since(int host) const {
    const auto it = cannot_close_.find(host);
    return it == cannot_close_.end() ? 0 : it->second;
  }
  // What the daemons say.
  plan::Plan Page() const;

 private:
  void Begin(const Fault& fault);
  void Heal(const Fault& fault, Nanos after, std::function<void()> what);
  void CutPorts(const Fault& fault, const std::vector<Port>& ports, const std::vector<Port>& reported);
  void BlockPath(const Fault& fault, Port from, Port to);
  void Reset(Port here, Port there, int ends);
  void ReportLink(Port port, bool up);
  // Only if the port has a link monitor: without an interface there is none.
  void ReportCarrier(Port port, bool up);
  bool HasLinkMonitor(Port port) const { return At(port.host)->io().options.link_monitor; }
  // The process that is on the node now.
  Process* At(int node) const { return world_.runs->Current(node); }
  int Rails(int host) const { return At(host)->io().options.rails; }

  const World world_;
  std::vector<Fault> armed_;
  std::vector<int> injected_ = std::vector<int>(kFaultKinds, 0);
  std::map<int, Nanos> gone_, deaths_;
  std::map<Port, bool> reported_up_;  // the last reports of link monitors
  std::map<int, Nanos> cannot_close_;
  std::map<std::pair<int, int>, net::RailVerdict> verdicts_;
  std::set<std::pair<Port, Port>> broken_paths_;
  int active_ = 0;  // planned or begun, and not healed
  Nanos last_healed_ = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_FAULTS_H_
