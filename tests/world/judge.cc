#include "tests/world/judge.h"

#include "absl/strings/str_cat.h"
#include "netplugin/transport/page_view.h"

namespace r2cc::world {
namespace {

// From the kernel's word to the daemon's page: it is one turn of its loop.
constexpr Nanos kOwnWithin = 50 * kNanosPerMs;
// A daemon has its connections to the others and to the store again: 2 s to miss one, and 2 s between two attempts.
constexpr Nanos kConnectedWithin = 5 * kNanosPerSecond;
// What a daemon says that has started again is held where its former run last reported through the store, as there may be two of its
// name: for the lease of an entry, and a tick.
constexpr Nanos kHeldWithin = 12 * kNanosPerSecond;
// From a daemon's word to the pages of the others that are connected: a commit of the store and two ways are below 10 ms.
constexpr Nanos kOthersWithin = 500 * kNanosPerMs;
// From a page to the job that reads it: a doorbell, a turn, and for a daemon that has come back the next try to attach.
constexpr Nanos kReadWithin = kNanosPerSecond;
// From a page to the links of a job, with another link to go to: a poll, and the chunks that were cut for the link before.
constexpr Nanos kJobsWithin = 3 * kNanosPerSecond;

std::string Text(const Nic& nic) { return absl::StrCat(cluster::NodeName(nic.node), "/", cluster::RailName(nic.rail)); }

// A rail that is slower than others is called degraded, and rightly.
bool IsBad(v1::NicState state) { return state == v1::FAILED || state == v1::SUSPECT; }

}  // namespace

Judge::Judge(const World& world) : world_(world), daemons_(static_cast<size_t>(world.count)) {}

void Judge::Forget(int node) {
  Daemon& daemon = daemons_[static_cast<size_t>(node)];
  ++daemon.boots;
  daemon.page.clear();
  daemon.broken_paths = 0;
  daemon.verdict.clear();
  daemon.down_since.clear();
}

void Judge::OnLink(int node, int rail, bool up) {
  auto& down = daemons_[static_cast<size_t>(node)].down_since;
  up ? void(down.erase(rail)) : void(down.try_emplace(rail, Now()));
}

void Judge::SetConnected(int node, bool connected) { daemons_[static_cast<size_t>(node)].connected_since = connected ? Now() : kNever; }

void Judge::OnPage(int node, const plan::Plan& plan, Nanos now) {
  Daemon& daemon = daemons_[static_cast<size_t>(node)];
  std::map<Nic, Entry> before = std::exchange(daemon.page, {});
  daemon.broken_paths = plan.broken_paths.size();
  for (const plan::PlannedNic& planned : plan.nics) {
    const Nic nic = cluster::NicOf(planned);
    const auto known = before.find(nic);
    const bool same = known != before.end() && (known->second.weight > 0) == (planned.weight_permille > 0);
    daemon.page[nic] = {planned.state, planned.weight_permille, same ? known->second.since : now};
    if (world_.calm && planned.weight_permille == 0 && planned.state == plan::PlannedState::kFailed)
      Violation("false verdict", absl::StrCat(cluster::NodeName(node), "'s page calls ", Text(nic), " failed, and nothing is broken"));
  }
  LookAtOwn(node);
}

void Judge::OnView(const v1::NodeView& view, int node, Nanos now) {
  auto& verdict = daemons_[static_cast<size_t>(node)].verdict;
  for (int rail = 0; rail < view.nics_size(); ++rail) {
    auto& [state, since] = verdict[rail];
    if (state != view.nics(rail).state()) since = now;
    state = view.nics(rail).state();
    if (world_.calm && IsBad(state))
      Violation("false verdict", absl::StrCat(Text({node, rail}), " is said to be ", v1::NicState_Name(state), ", ",
                                              view.nics(rail).reason(), ", and nothing is broken"));
  }
}

// Its own NICs: what its kernel has told it, and what it has promised.
void Judge::LookAtOwn(int node) const {
  const Daemon& daemon = daemons_[static_cast<size_t>(node)];
  for (const auto& [nic, entry] : daemon.page) {
    if (nic.node != node || entry.weight == 0) continue;
    const auto down = daemon.down_since.find(nic.rail);
    if (down != daemon.down_since.end() && Now() - down->second > kOwnWithin)
      Violation("plan against facts",
                absl::StrCat(Text(nic), " has weight ", entry.weight, " on its own daemon's page, which has known for ",
                             (Now() - down->second) / kNanosPerMs, " ms that its link is down"));
    if (const Nanos promised = world_.settings->promised_since(nic); promised != 0 && promised < Now())
      Violation("operator's setting", absl::StrCat(Text(nic), " is drained, and has weight ", entry.weight, " on its own daemon's page"));
  }
}

bool Judge::ConnectedFor(int node, Nanos least) const {
  const Nanos since = daemons_[static_cast<size_t>(node)].connected_since;
  return since != kNever && Now() - since > least;
}

void Judge::LookAtOthers(int node) const {
  for (size_t other = 0; other < daemons_.size(); ++other) {
    const Nanos least = daemons_[other].boots > 1 ? kHeldWithin : kConnectedWithin;
    if (static_cast<int>(other) == node || !ConnectedFor(static_cast<int>(other), least)) continue;
    for (const auto& [rail, verdict] : daemons_[other].verdict) {
      const auto& [state, since] = verdict;
      if ((state != v1::FAILED && state != v1::DRAINED) || Now() - since < kOthersWithin) continue;
      const Nic nic{static_cast<int>(other), rail};
      const auto entry = daemons_[static_cast<size_t>(node)].page.find(nic);
      if (entry == daemons_[static_cast<size_t>(node)].page.end() || entry->second.weight == 0) continue;
      Violation("plan against facts", absl::StrCat(Text(nic), " has weight ", entry->second.weight, " on the page of ",
                                                   cluster::NodeName(node), ", and its own daemon has called it ", v1::NicState_Name(state),
                                                   " for ", (Now() - since) / kNanosPerMs, " ms"));
    }
  }
}

void Judge::LookAtLinks() {
  for (const sim::Process* const process : processes_)
    for (const auto& [receiver, peer] : process->send_peers())
      for (net::LinkId link = 0; link < peer->session().links().count(); ++link) {
        const std::tuple name{process->host(), receiver, link};
        const bool up = !process->stopped() && peer->session().links().state(link) == net::InitiatorState::kUp;
        up ? void(up_since_.try_emplace(name, Now())) : void(up_since_.erase(name));
      }
}

void Judge::Look() {
  const bool spreads = store_since_ != kNever && Now() - store_since_ > kConnectedWithin;
  for (size_t i = 0; i < daemons_.size(); ++i) {
    const int node = static_cast<int>(i);
    if (ConnectedFor(node, kOwnWithin)) LookAtOwn(node);
    if (spreads && ConnectedFor(node, kConnectedWithin)) LookAtOthers(node);
  }
  LookAtLinks();
  for (const sim::Process* const process : processes_) {
    LookAtReader(*process);
    LookForFormerPeers(*process);
  }
}

void Judge::LookAtReader(const sim::Process& process) {
  const int node = process.node();
  if (!process.begun() || process.stopped() || process.dead() || process.exiting()) return void(awake_since_.erase(process.host()));
  if (Now() - awake_since_.try_emplace(process.host(), Now()).first->second < kReadWithin || !ConnectedFor(node, kConnectedWithin)) return;
  const std::map<Nic, Entry>& page = daemons_[static_cast<size_t>(node)].page;
  for (size_t other = 0; other < daemons_.size(); ++other) {
    const cluster::Node& of = *(*world_.nodes)[other];
    std::vector<std::string> names;
    for (int rail = 0; rail < of.rails(); ++rail) names.push_back(of.nic_name(rail));
    const auto judged = process.Judge(net::NamesOnPage(cluster::NodeName(static_cast<int>(other)), names));
    const std::vector<net::RailVerdict>& read = static_cast<int>(other) == node ? judged.local : judged.remote;
    for (int rail = 0; rail < of.rails(); ++rail) {
      const Nic nic{static_cast<int>(other), rail};
      const auto entry = page.find(nic);
      if (entry == page.end() || Now() - entry->second.since < kReadWithin) continue;
      const uint16_t weight = read[static_cast<size_t>(rail)].weight_permille;
      if ((weight == 0) != (entry->second.weight == 0))
        Violation("page misread", absl::StrCat("process ", node, " reads weight ", weight, " for ", Text(nic),
                                               ", and its daemon's page has ", entry->second.weight));
    }
  }
}

// A job leaves a drained rail while it has another one. With keys it may have none for this message: some devices refuse its buffer.
void Judge::ChunkLeaves(int sender, int receiver, const Nic& from, const Nic& to) {
  if (processes_[static_cast<size_t>(sender)]->io().options.keys || !ConnectedFor(from.node, kJobsWithin)) return;
  const std::map<Nic, Entry>& page = daemons_[static_cast<size_t>(from.node)].page;
  const auto weight = [&](const Nic& nic) -> const Entry* {
    const auto entry = page.find(nic);
    return entry == page.end() || Now() - entry->second.since < kJobsWithin ? nullptr : &entry->second;
  };
  std::optional<Nic> off;
  for (const Nic& nic : {from, to}) {
    const Nanos promised = world_.settings->promised_since(nic);
    const Entry* const entry = weight(nic);
    if (promised != 0 && Now() - promised > kJobsWithin && entry != nullptr && entry->weight == 0) off = nic;
  }
  if (!off.has_value()) return;
  const net::SendLinks& links = processes_[static_cast<size_t>(sender)]->send_peers().at(receiver)->session().links();
  for (net::LinkId link = 0; link < links.count(); ++link) {
    const auto up = up_since_.find({sender, receiver, link});
    if (up == up_since_.end() || Now() - up->second < kJobsWithin) continue;
    const Entry* const here = weight({from.node, links.local_rail(link)});
    const Entry* const there = weight({to.node, links.remote_rail(link)});
    if (here == nullptr || there == nullptr || here->weight == 0 || there->weight == 0) continue;
    return Violation("operator's setting", absl::StrCat("a chunk leaves by ", Text(from), " to ", Text(to), ", ", Text(*off),
                                                        " is drained, and link ", link, " is up"));
  }
}

std::string Judge::Unrested() const {
  for (size_t i = 0; i < daemons_.size(); ++i) {
    if (vanished_.contains(static_cast<int>(i))) continue;
    const Daemon& daemon = daemons_[i];
    const std::string node = cluster::NodeName(static_cast<int>(i));
    if (daemon.connected_since == kNever) return absl::StrCat("the daemon of ", node, " does not run");
    if (daemon.broken_paths > 0) return absl::StrCat("the page of ", node, " forbids ", daemon.broken_paths, " paths");
    for (size_t other = 0; other < daemons_.size(); ++other)
      for (int rail = 0; rail < (*world_.nodes)[other]->rails(); ++rail) {
        const Nic nic{static_cast<int>(other), rail};
        if (vanished_.contains(nic.node)) continue;
        const auto entry = daemon.page.find(nic);
        if (entry == daemon.page.end()) return absl::StrCat("the page of ", node, " lacks ", Text(nic));
        if (entry->second.weight == 0)
          return absl::StrCat("the page of ", node, " gives ", Text(nic), " no weight: state ", static_cast<int>(entry->second.state));
      }
  }
  for (const sim::Process* const process : processes_) {
    if (process->dead() || process->exiting()) continue;
    for (const auto& [receiver, peer] : process->send_peers()) {
      const net::SendLinks& links = peer->session().links();
      for (net::LinkId link = 0; link < links.count(); ++link)
        if (links.is_home(link) && links.state(link) != net::InitiatorState::kUp && !peer->session().failed())
          return absl::StrCat("link ", link, " of process ", process->host(), " to ", receiver, " is ", net::Name(links.state(link)));
    }
  }
  return "";
}

}  // namespace r2cc::world
