// Breaks something in a cluster, measures what comes of it, and mends it again.
#ifndef R2CC_TESTS_CLUSTER_SCENARIO_H_
#define R2CC_TESTS_CLUSTER_SCENARIO_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/cluster/cluster.h"

namespace r2cc::cluster {

// What the cluster does when nothing is wrong, over `time`.
struct Healthy {
  Nanos time = 0;
  Counts counts;
  double processor_s = 0;  // of the whole simulation: the daemons, and the event queue and networks beneath them
  int views = 0;           // that changed
};
Healthy MeasureHealthy(Cluster* cluster, Nanos time);

struct Fault {
  std::string name;
  std::vector<Nic> nics;    // that a right page forbids
  std::set<int> observers;  // the nodes whose pages must say so
  bool known = true;        // false: no page is to change
  std::function<void()> breaks;
  std::function<void()> mends;
};

struct Outcome {
  std::string name;
  size_t pages_expected = 0;
  size_t pages_missing = 0;   // of those, the ones that never said so
  std::vector<Nanos> delays;  // from the fault to each page, sorted
  size_t back_missing = 0;    // pages that did not take the NICs back
  Nanos back_max = 0;         // from the repair to the last page that did
  Counts counts;              // of the fault and what it brought with it, without what would have been sent anyway; not of the repair
  int verdicts = 0;           // of daemons about their own NICs
  int views = 0;              // that changed, each of which goes to all nodes
  int pages = 0;              // that were published
  double processor_s = 0;     // as of Healthy, without what would have been used anyway
};
Outcome MeasureFault(Cluster* cluster, const Healthy& healthy, const Fault& fault);

// The smallest delay that at least this share of all does not exceed. REQUIRES: sorted, not empty.
Nanos Percentile(const std::vector<Nanos>& sorted, double share);

Fault LinkDown(Cluster* cluster, const std::vector<Nic>& nics, const std::string& name);
// `known`: false where nobody can be compared with, as on nodes of which no rail answers any more: no page is to change.
Fault Silence(Cluster* cluster, const std::vector<Nic>& nics, const std::string& name, bool known = true);
// The nodes vanish with their daemons: nothing is heard of them, and no verdict on their NICs is right.
Fault PowerLoss(Cluster* cluster, const std::set<int>& nodes, const std::string& name);

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_SCENARIO_H_
