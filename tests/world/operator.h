// An operator who drains NICs and takes them back, through the daemons, and asks again until there is an answer.
#ifndef R2CC_TESTS_WORLD_OPERATOR_H_
#define R2CC_TESTS_WORLD_OPERATOR_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/node.h"

namespace r2cc::world {

using cluster::Nic;

class Operator {
 public:
  // Both outlive it.
  Operator(sim::Timeline* timeline, const std::vector<std::unique_ptr<cluster::Node>>* nodes) : timeline_(timeline), nodes_(nodes) {}

  // Bits of `how`: 1: also the last NIC that carries traffic; 2: it asks another daemon than the NIC's own; 4: at once. A NIC that is
  // drained twice has to be taken back twice.
  void Drain(const Nic& nic, int how, bool drained);
  // Every request has its answer.
  bool answered() const;
  // Since when the daemon has promised to keep traffic off the NIC; 0: it has not, or it may take it back.
  Nanos promised_since(const Nic& nic) const;

 private:
  struct Setting {
    int wanted = 0;  // drains that are in force
    int how = 0;
    bool settled = true;  // the last answer is the one to what is wanted
    bool asking = false;
    Nanos promised_since = 0;
  };
  void Ask(const Nic& nic);
  void Answered(const Nic& nic, bool drain, const absl::StatusOr<v1::NicActionReply>& reply);
  cluster::Node* DaemonFor(const Nic& nic, int how) const;

  sim::Timeline* const timeline_;
  const std::vector<std::unique_ptr<cluster::Node>>* const nodes_;
  std::map<Nic, Setting> settings_;
};

}  // namespace r2cc::world

#endif  // R2CC_TESTS_WORLD_OPERATOR_H_
