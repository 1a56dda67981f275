// The daemons of a simulated world: whole r2ccd of tests/cluster on the timeline and the network of tests/sim's processes, which attach to
// them by the shipped sockets and shared memory.
//
// One network decides for probes, data, the out-of-band connections and the daemons' own traffic what passes. The page of a daemon is a
// memfd that the process of its node maps; evidence goes back by the ring. Nothing but time, the network, the kernel's link events and the
// store is simulated.
#ifndef R2CC_TESTS_WORLD_DAEMONS_H_
#define R2CC_TESTS_WORLD_DAEMONS_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/world.h"
#include "tests/world/judge.h"
#include "tests/world/operator.h"
#include "tests/world/wire.h"

namespace r2cc::world {

class ClusterDaemons final : public sim::Daemons {
 public:
  // Sockets are made in the working directory.
  ClusterDaemons(sim::Network* network, sim::Checker* checker, const sim::Scenario& scenario);
  ~ClusterDaemons() override;

  std::unique_ptr<net::DaemonLink> NewLink(int host) override;
  void SetProcesses(const std::vector<sim::Process*>& processes) override;
  void ChunkLeaves(sim::Port from, sim::Port to) override;
  void Carrier(sim::Port port, bool up) override;
  void End(int node, bool killed) override;
  void Start(int node) override;
  void Vanish(int node) override;
  void Pause(int node, bool paused) override;
  void Store(bool up) override;
  void Isolate(int node, bool apart) override;
  void Drain(sim::Port port, int degree, bool drained) override { operator_.Drain({port.host, port.rail}, degree, drained); }
  void StepClock(int node, Nanos by) override { At(node).StepClock(by); }
  bool answered() const override { return operator_.answered(); }
  std::string Unrested() const override { return judge_.Unrested(); }

 private:
  cluster::Node& At(int node) { return *nodes_[static_cast<size_t>(node)]; }
  void Watch();
  void AskJobs();
  // The daemon's situation has changed.
  void Note(int node);

  sim::Timeline* const timeline_;
  const sim::Network* const ports_;
  const std::string attach_;  // the prefix of the sockets
  cluster::Network network_;
  cluster::SimExecutor wires_;
  health::FakeDatagramNet datagrams_{&wires_};
  cluster::PeerDirectory directory_{&network_};
  cluster::StoreServer store_{&network_};
  std::vector<std::unique_ptr<cluster::Node>> nodes_;
  Operator operator_{timeline_, &nodes_};
  const bool has_runs_;  // the job has several
  Judge judge_;
  std::vector<Wire*> links_;              // by process
  std::vector<std::string> process_ids_;  // by process, as daemons show them
  Nanos asked_ = 0;                       // about jobs
  std::vector<sim::Process*> processes_;
  std::vector<int> ended_, paused_, apart_;  // how many faults have it so
  int store_down_ = 0;
};

}  // namespace r2cc::world

#endif  // R2CC_TESTS_WORLD_DAEMONS_H_
