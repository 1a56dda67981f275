#include "tests/world/daemons.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace r2cc::world {
namespace {

// Daemons and the store begin within this time: jobs attach when they are there.
constexpr Nanos kStartSpread = 200 * kNanosPerMs;
constexpr Nanos kLookEvery = 100 * kNanosPerMs;
constexpr Nanos kAskEvery = kNanosPerSecond;

// Worlds run side by side.
std::string NextPrefix() {
  static std::atomic<uint64_t> worlds{0};
  return absl::StrCat("./world", getpid(), ".", ++worlds, ".");
}

cluster::NetworkOptions OptionsOf(const sim::Scenario& scenario) {
  cluster::NetworkOptions options;
  options.full_fabric = scenario.full_fabric;
  return options;
}

// The process on the node; where there is none, the first one: the node is like its own.
const sim::ProcessOptions& ProcessOf(const sim::Scenario& scenario, int node) {
  const size_t index = static_cast<size_t>(node);
  return scenario.processes[index < scenario.processes.size() ? index : 0];
}

}  // namespace

ClusterDaemons::ClusterDaemons(sim::Network* network, sim::Checker* checker, const sim::Scenario& scenario)
    : timeline_(network->timeline()),
      ports_(network),
      attach_(NextPrefix()),
      network_(network, OptionsOf(scenario), scenario.daemons, std::ranges::max(scenario.Rails())),
      wires_(timeline_, {}),
      has_runs_(scenario.runs > 1),
      judge_({timeline_, checker, &nodes_, &operator_, scenario.daemons, scenario.kind == sim::Class::kCalm}),
      ended_(static_cast<size_t>(scenario.daemons)),
      paused_(ended_),
      apart_(ended_) {
  datagrams_.set_path([this](const auto& from, const auto& to) { return network_.Rail(from, to); });
  datagrams_.set_limit([this](const auto& from, const auto& to) { return network_.Limit(from, to); });
  cluster::Surroundings around = {timeline_, &network_, &datagrams_, &directory_, &store_, &judge_};
  around.attach = attach_;
  around.twins = scenario.twins;
  around.short_histories = scenario.rounds > 1;
  for (int node = 0; node < scenario.daemons; ++node) around.clocks.push_back(ProcessOf(scenario, node).clock);
  around.rings_jobs = [this](int node) {
    for (sim::Process* const process : processes_)
      if (process->node() == node) process->Wake();
  };
  for (int node = 0; node < scenario.daemons; ++node) {
    nodes_.push_back(std::make_unique<cluster::Node>(node, ProcessOf(scenario, node).rails, around));
    ended_[static_cast<size_t>(node)] = 1;
    timeline_->After(timeline_->random().Between(0, kStartSpread), [this, node] { Start(node); });
  }
  store_down_ = 1;
  timeline_->After(timeline_->random().Between(0, kStartSpread), [this] { Store(true); });
  Watch();
}

ClusterDaemons::~ClusterDaemons() {
  // They have ended before.
  processes_.clear();
  for (const auto& node : nodes_) {
    node->End(/*killed=*/false);
    unlink(node->attach_path().c_str());
  }
}

void ClusterDaemons::Watch() {
  judge_.Look();
  if (has_runs_ && timeline_->now() - asked_ >= kAskEvery) AskJobs();
  timeline_->After(kLookEvery, [this] { Watch(); });
}

void ClusterDaemons::AskJobs() {
  asked_ = timeline_->now();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const int node = static_cast<int>(i);
    if (!At(node).running()) continue;
    At(node).AskJobs(false, [this, node](const v1::ListJobsReply& reply) { judge_.OnJobs(node, reply, At(node).places()); });
    At(node).AskJobs(true, [this, node](const v1::ListJobsReply& reply) { judge_.OnEnded(node, reply); });
  }
}

std::unique_ptr<net::DaemonLink> ClusterDaemons::NewLink(int host) {
  const int node = ports_->NodeOf(host);
  plan::AttachRequest request = At(node).RequestOf("world");
  request.pid = getpid();
  request.process_id = timeline_->random().Next();
  process_ids_.push_back(absl::StrFormat("%016x", request.process_id));
  auto link = std::make_unique<Wire>(At(node).attach_path(), request, [this, node] { At(node).LookSoon(); });
  links_.push_back(link.get());
  return link;
}

void ClusterDaemons::SetProcesses(const std::vector<sim::Process*>& processes) {
  processes_ = processes;
  judge_.SetProcesses(processes, process_ids_);
  for (size_t host = 0; host < processes.size(); ++host) processes[host]->hangs_up = [link = links_[host]] { link->HangUp(); };
}

void ClusterDaemons::ChunkLeaves(sim::Port from, sim::Port to) {
  judge_.ChunkLeaves(from.host, to.host, {ports_->NodeOf(from.host), from.rail}, {ports_->NodeOf(to.host), to.rail});
}

void ClusterDaemons::Carrier(sim::Port port, bool up) {
  timeline_->After(timeline_->random().Between(50'000, kNanosPerMs), [this, port, up] { At(port.host).SetLink(port.rail, up); });
}

void ClusterDaemons::Note(int node) {
  const size_t at = static_cast<size_t>(node);
  judge_.SetConnected(node, ended_[at] == 0 && paused_[at] == 0 && apart_[at] == 0);
}

void ClusterDaemons::End(int node, bool killed) {
  if (++ended_[static_cast<size_t>(node)] == 1) At(node).End(killed);
  Note(node);
}

void ClusterDaemons::Start(int node) {
  const size_t at = static_cast<size_t>(node);
  if (--ended_[at] == 0) At(node).Start();
  if (ended_[at] == 0 && paused_[at] > 0) At(node).Pause();
  Note(node);
}

void ClusterDaemons::Vanish(int node) {
  End(node, /*killed=*/true);
  network_.SetOff(node, true);
  judge_.Vanish(node);
}

void ClusterDaemons::Pause(int node, bool paused) {
  int& pauses = paused_[static_cast<size_t>(node)];
  if (paused && ++pauses == 1) At(node).Pause();
  if (!paused && --pauses == 0) At(node).Continue();
  Note(node);
}

void ClusterDaemons::Store(bool up) {
  store_down_ += up ? -1 : 1;
  store_.SetUp(store_down_ == 0);
  judge_.SetStore(store_down_ == 0);
}

void ClusterDaemons::Isolate(int node, bool apart) {
  int& faults = apart_[static_cast<size_t>(node)];
  faults += apart ? 1 : -1;
  // Each is alone on a side of its own.
  network_.SetSide(node, faults > 0 ? node + 1 : 0);
  Note(node);
}

}  // namespace r2cc::world
