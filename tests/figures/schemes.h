// What each way to live with lost NICs makes of an AllReduce and of a transfer, in seconds, from plan/'s closed forms.
#ifndef R2CC_TESTS_FIGURES_SCHEMES_H_
#define R2CC_TESTS_FIGURES_SCHEMES_H_

#include "plan/collective/choose.h"
#include "tests/figures/failures.h"

namespace r2cc::figures {

// Servers with equal rails; what one GPU has for itself is one rail.
struct Cluster {
  int servers = 0;
  int rails = 8;
  double rail_bytes_per_s = 50e9;  // 400 Gb/s
  double step_latency_s = 1e-6;
  double message_s = 1e-7;  // that a port is busy with a message beside its bytes

  double server_bytes_per_s() const { return rails * rail_bytes_per_s; }
};

enum class Scheme {
  kMigration,  // what a lost rail carried goes over another one
  kBalance,    // over all that are left; ring through all servers
  kR2cc,       // the best of Balance, R2CC-AllReduce and its recursive decomposition
  kOurs,       // what plan/ chooses
};
const char* SchemeName(Scheme scheme);
constexpr Scheme kSchemes[] = {Scheme::kMigration, Scheme::kBalance, Scheme::kR2cc, Scheme::kOurs};

// Every server with what it has left.
plan::Ports PortsOf(const Cluster& cluster, const Lost& lost);

// The AllReduce of a vector of `bytes` in every server, servers being the members: each sums inside first, as groups do that have one GPU
// on each server. The cheapest of what the scheme may use.
double ServerAllReduceSeconds(const Cluster& cluster, Scheme scheme, double bytes, const Lost& lost);

// The AllReduce of a vector of `bytes` in every GPU by one ring through all GPUs, which enters and leaves each server once a rail: how
// NCCL sums across few servers, and how R2CC's paper counts (its p is the number of GPUs). kOurs has no such form. R2CC-AllReduce with
// K to infinity, its best; where several servers are degraded, Balance.
double FlatAllReduceSeconds(const Cluster& cluster, int gpus, Scheme scheme, double bytes, const Lost& lost);

// One transfer between two GPUs' rails, the worst of those of a server that lost `lost` rails.
double TransferSeconds(const Cluster& cluster, Scheme scheme, double bytes, int lost);

}  // namespace r2cc::figures

#endif  // R2CC_TESTS_FIGURES_SCHEMES_H_
