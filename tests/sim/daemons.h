// The daemons of a simulated world: one a node, and process k is on node k. What World and Faults need of them; tests/world has them.
#ifndef R2CC_TESTS_SIM_DAEMONS_H_
#define R2CC_TESTS_SIM_DAEMONS_H_

#include <memory>
#include <string>
#include <vector>

#include "netplugin/attach/daemon_link.h"
#include "tests/sim/process.h"

namespace r2cc::sim {

class Daemons {
 public:
  virtual ~Daemons() = default;

  // The link of a process to the daemon of its node; before the process is made.
  virtual std::unique_ptr<net::DaemonLink> NewLink(int host) = 0;
  // They are all there, and stay until the daemons end.
  virtual void SetProcesses(const std::vector<Process*>& processes) = 0;
  // A chunk leaves by a rail of the process to a rail of its peer.
  virtual void ChunkLeaves(Port from, Port to) = 0;

  // ---- faults ----

  // The kernel of the port's node says so, to its daemon.
  virtual void Carrier(Port port, bool up) = 0;
  // The node's daemon is killed, or ended on purpose; or it starts.
  virtual void End(int node, bool killed) = 0;
  virtual void Start(int node) = 0;
  // The node is gone with all that was on it, for ever.
  virtual void Vanish(int node) = 0;
  // It is stopped by a signal, or goes on.
  virtual void Pause(int node, bool paused) = 0;
  virtual void Store(bool up) = 0;
  // The management network keeps the node apart from the others, and from the store.
  virtual void Isolate(int node, bool apart) = 0;
  // An operator drains a NIC and takes it back. Words that are refused, or lost, are repeated. `degree`: how, and where they are spoken.
  virtual void Drain(Port port, int degree, bool drained) = 0;
  // The clock of day of the node's machine jumps.
  virtual void StepClock(int node, Nanos by) = 0;
  // True if no operator still waits for an answer.
  virtual bool answered() const = 0;

  // Nothing is broken any more: what is not as it must be then; empty if all is well.
  virtual std::string Unrested() const = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_DAEMONS_H_
