// Two nodes and the rails between them, as a world of processes wants them: what its faults are made with.
#ifndef R2CC_TESTS_CONTRACT_PROCESSES_NODES_H_
#define R2CC_TESTS_CONTRACT_PROCESSES_NODES_H_

#include <cstdint>
#include <map>
#include <string>

#include "tests/contract/world.h"

namespace r2cc::contract {

// A call that fails fails the test that is running.
class Nodes {
 public:
  virtual ~Nodes() = default;

  // A descriptor of the network namespace in which the end's process runs, for setns(); the caller's to close.
  virtual int OpenNamespace(End end) const = 0;
  // kOob: the management interface.
  virtual std::string InterfaceOf(End end, int rail) const = 0;
  // What both processes have in their environment besides, as R2CC_TRANSPORT.
  virtual std::map<std::string, std::string> Environment() const { return {}; }

  // ---- `rail` may be kOob; as in World ----

  virtual void Cut(End end, int rail) = 0;
  virtual void Silence(End end, int rail) = 0;
  virtual void Heal(End end, int rail) = 0;
  virtual bool Lose(End /*end*/, int /*rail*/, Loss /*loss*/) { return false; }
  virtual void Shape(End end, int rail, int64_t bytes_per_s) = 0;
  // As when they were made, every rail at this rate.
  virtual void Reset(int64_t rail_bytes_per_s) = 0;
};

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_PROCESSES_NODES_H_
