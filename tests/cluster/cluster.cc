#include "tests/cluster/cluster.h"

#include <algorithm>
#include <numeric>

namespace r2cc::cluster {
namespace {

// So often RunUntil looks.
constexpr Nanos kStep = 5 * kNanosPerMs;
// All daemons begin within this time, and the store after it.
constexpr Nanos kStartSpread = kNanosPerSecond;

}  // namespace

Cluster::Cluster(const ClusterOptions& options)
    : options_(options),
      timeline_(options.seed),
      network_(&ports_, options.network, options.nodes, options.rails),
      watch_(options.nodes, options.rails) {
  datagrams_.set_path([this](const auto& from, const auto& to) { return network_.Rail(from, to); });
  const Surroundings around = {&timeline_, &network_, &datagrams_, &directory_, &store_, &watch_};
  for (int node = 0; node < options.nodes; ++node) nodes_.push_back(std::make_unique<Node>(node, options.rails, around));

  std::vector<int> all(static_cast<size_t>(options.nodes));
  std::iota(all.begin(), all.end(), 0);
  for (int rack = 0; rack * options_.rack_nodes < options.nodes; ++rack) {
    const std::set<int> members = Rack(rack);
    AddJob({members.begin(), members.end()});
  }
  // Schedulers place as it comes: the ring of the great job goes through the racks in no order.
  for (size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[network_.Random() % i]);
  AddJob(all);
}

void Cluster::AddJob(const std::vector<int>& members) {
  const size_t count = members.size();
  for (size_t i = 0; i < count; ++i) {
    std::set<int> peers = {members[(i + 1) % count], members[(i + count - 1) % count]};
    if (i > 0) peers.insert(members[(i - 1) / 2]);
    for (const size_t child : {2 * i + 1, 2 * i + 2})
      if (child < count) peers.insert(members[child]);
    peers.erase(members[i]);
    node(members[i]).AddJob({peers.begin(), peers.end()});
  }
}

bool Cluster::Start(Nanos limit) {
  for (int number = 0; number < options_.nodes; ++number)
    timeline_.After(timeline_.random().Between(0, kStartSpread), [this, number] { node(number).Start(); });
  Run(kStartSpread);
  watch_.Await(AllNics(), /*usable=*/true, Running(), Now());
  store_.SetUp(true);
  return RunUntil([this] { return watch_.missing() == 0; }, limit) && RunUntilQuiet(limit);
}

bool Cluster::RunUntil(const std::function<bool()>& done, Nanos limit) {
  for (const Nanos end = Now() + limit; !done();) {
    if (Now() >= end) return false;
    Run(kStep);
  }
  return true;
}

bool Cluster::RunUntilQuiet(Nanos limit) {
  for (const Nanos end = Now() + limit; Now() < end;) {
    const int before = watch_.views();
    Run(kNanosPerSecond);
    if (watch_.views() == before) return true;
  }
  return false;
}

std::vector<Nic> Cluster::NicsOf(const std::set<int>& nodes) const {
  std::vector<Nic> nics;
  for (const int node : nodes)
    for (int rail = 0; rail < options_.rails; ++rail) nics.push_back({node, rail});
  return nics;
}

std::vector<Nic> Cluster::AllNics() const {
  std::set<int> all;
  for (int node = 0; node < options_.nodes; ++node) all.insert(node);
  return NicsOf(all);
}

std::set<int> Cluster::Running(const std::set<int>& without) const {
  std::set<int> running;
  for (int number = 0; number < options_.nodes; ++number)
    if (nodes_[static_cast<size_t>(number)]->running() && !without.contains(number)) running.insert(number);
  return running;
}

std::set<int> Cluster::Rack(int rack) const {
  std::set<int> nodes;
  for (int node = rack * options_.rack_nodes; node < std::min((rack + 1) * options_.rack_nodes, options_.nodes); ++node) nodes.insert(node);
  return nodes;
}

void Cluster::SetLink(const Nic& nic, bool up) {
  network_.SetPortDead(nic.node, nic.rail, !up);
  node(nic.node).SetLink(nic.rail, up);
}

void Cluster::SetPower(int number, bool on) {
  network_.SetOff(number, !on);
  if (on)
    node(number).Start();
  else
    node(number).End();
}

size_t Cluster::connections() const {
  size_t ends = 0;
  for (const auto& node : nodes_) ends += node->connections();
  return ends / 2;
}

}  // namespace r2cc::cluster
