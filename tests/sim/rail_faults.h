// What may happen to the devices of rails that are not the simulated network's own: for faults.h. One thread, virtual time.
#ifndef R2CC_TESTS_SIM_RAIL_FAULTS_H_
#define R2CC_TESTS_SIM_RAIL_FAULTS_H_

#include "tests/sim/socket.h"

namespace r2cc::sim {

// What carries the links of rails.
enum class Rails {
  kNetwork,  // the simulated network
  kVerbs,    // the shipped verbs transport over the fake fabric
};

class RailFaults {
 public:
  virtual ~RailFaults() = default;
  // The device of the port says so; each false is undone by one true.
  virtual void Carrier(Port port, bool on) = 0;
  // What joins the ports ends by itself. `ends`: 1 the first port's, 2 the second's, 3 both. `reported`: events report it.
  virtual void Reset(Port a, Port b, int ends, bool reported) = 0;
  // With all that it did; or it can be opened again.
  virtual void Device(Port port, bool lost) = 0;
  // The port has lost its address, ...
  virtual void LoseAddress(Port port) = 0;
  // ... and has another one.
  virtual void NewAddress(Port port) = 0;
  // One of the next completions of the process says one of the statuses that devices say.
  virtual void FailCompletion(int host, int degree) = 0;
  // One of its next posts fails.
  virtual void FailPost(int host, int degree) = 0;
  // Calls that change queue pairs take so long; 0: no time.
  virtual void SlowCalls(int host, Nanos takes) = 0;
  // What joins the ports takes requests at the first one's end and never reports their end. `degree`: whether it sends them.
  virtual void StallPairs(Port a, Port b, int degree) = 0;
  // All of the port's device does; or it is sound again.
  virtual void StallDevice(Port port, int degree, bool stalls) = 0;
  // A completion queue between the ports breaks, at the first one's end.
  virtual void BreakCompletions(Port a, Port b) = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_RAIL_FAULTS_H_
