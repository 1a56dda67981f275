#include "daemon/rails/rail_alarms.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/rails/rail_targets.h"

namespace r2cc::daemon {
namespace {

using health::NicKey;
using health::NicStatus;
using health::PairKey;
using health::RailPairStatus;
using Kind = RailAlarm::Kind;

constexpr size_t kNamesShown = 4;
// A pair that was asked less often was hardly asked.
constexpr uint64_t kAskedMin = 5;

template <typename Names>
std::string Listed(const Names& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  const std::string text = absl::StrJoin(names.begin(), std::next(names.begin(), static_cast<ptrdiff_t>(shown)), ", ");
  return names.size() > shown ? absl::StrCat(text, " and ", names.size() - shown, " more") : text;
}

std::string InterfaceOf(const NicStatus& nic) { return nic.identity.interface.empty() ? nic.identity.name : nic.identity.interface; }

// The longest that nobody answered; a pair that never was is unknown since it was first asked.
bool Unanswered(const RailPairStatus& pair, Nanos now, Nanos for_at_least) {
  const Nanos since = pair.measures.last_answer != 0 ? pair.measures.last_answer : pair.since;
  return pair.measures.sent >= kAskedMin && now - since >= for_at_least;
}

class Finder {
 public:
  explicit Finder(const RailAlarmFacts& facts) : facts_(facts) {
    const health::NodeEntry* const own = facts.view->Find(facts.node);
    if (own == nullptr) return;
    for (const std::string& name : facts.nics)
      if (const NicStatus* const nic = own->state.Find(name); nic != nullptr) own_.emplace(name, nic);
  }

  // Both ends have a link, and the daemon of the other one is up: so it should be answered.
  bool ShouldAnswer(const RailPairStatus& pair) const {
    const auto own = own_.find(pair.key.own.nic);
    const NicStatus* const peer = facts_.view->Find(pair.key.peer);
    const auto last_message = facts_.last_messages.find(pair.key.peer.node);
    return own != own_.end() && own->second->link_up && !own->second->drill_failed && peer != nullptr && peer->link_up &&
           !peer->drill_failed && last_message != facts_.last_messages.end() && facts_.now - last_message->second < kDaemonAwake;
  }

  std::vector<RailAlarm> Find() {
    FindCrossed();
    if (alarms_.empty()) FindBlind();
    FindWithoutPartner();
    FindSuspects();
    std::sort(alarms_.begin(), alarms_.end());
    return std::move(alarms_);
  }

 private:
  void Add(Kind kind, const std::string& nic, std::string text) { alarms_.push_back({kind, nic, std::move(text)}); }

  // "rail1 (eth2)"
  std::string Own(const std::string& nic) const {
    const auto found = own_.find(nic);
    return found == own_.end() ? nic : absl::StrCat(nic, " (", InterfaceOf(*found->second), ")");
  }

  const RailPairStatus* PairWith(const NicKey& peer) const {
    const auto found = std::find_if(facts_.pairs.begin(), facts_.pairs.end(), [&](const auto& pair) { return pair.key.peer == peer; });
    return found == facts_.pairs.end() ? nullptr : &*found;
  }

  bool IsAnswered(const std::string& own) const {
    return std::any_of(facts_.pairs.begin(), facts_.pairs.end(), [&](const RailPairStatus& pair) {
      return pair.key.own.nic == own && pair.measures.last_answer != 0 && !Unanswered(pair, facts_.now, kCrossedAfter);
    });
  }

  // An answer on another rail's network is no crossed cable where rails share a network. There the NIC that was answered is answered on its
  // own rail, too, and the one that is not may be dead.
  void FindCrossed() {
    // By this node's NIC that was answered, and the one that should have been: who answered.
    std::map<std::pair<std::string, std::string>, std::vector<NicKey>> found;
    for (const PairKey& stray : facts_.strays) {
      const RailPairStatus* const pair = PairWith(stray.peer);
      if (pair == nullptr || pair->key.own.nic == stray.own.nic || !Unanswered(*pair, facts_.now, kCrossedAfter)) continue;
      if (IsAnswered(stray.own.nic) && !IsAnswered(pair->key.own.nic)) continue;
      found[{stray.own.nic, pair->key.own.nic}].push_back(stray.peer);
    }
    for (const auto& [rails, peers] : found) {
      const auto& [answered, silent] = rails;
      crossed_.insert({answered, silent});
      const auto facts = [&, &answered = answered, &silent = silent](const std::vector<NicKey>& who) {
        return absl::StrCat(Listed(Texts(who)), who.size() == 1 ? " answers " : " answer ", Own(answered), " and not ", Own(silent));
      };
      if (peers.size() > 1 && !IsAnswered(answered)) {
        Add(Kind::kCrossed, answered,
            absl::StrCat(Own(answered), " of ", facts_.node, " seems to be on the network of ", silent, ": ", facts(peers),
                         "; check where its cable leads"));
        continue;
      }
      for (const NicKey& peer : peers)
        Add(Kind::kCrossed, silent,
            absl::StrCat(
                peer.ToString(), " seems to be on the network of ", answered, ": ", facts({peer}), "; check where ",
                IsAnswered(silent) ? "its cable leads" : absl::StrCat("the cables of ", peer.node, " and ", facts_.node, " lead")));
    }
  }

  static std::vector<std::string> Texts(const std::vector<NicKey>& nics) {
    std::vector<std::string> texts;
    for (const NicKey& nic : nics) texts.push_back(nic.ToString());
    return texts;
  }

  void FindBlind() {
    std::set<std::string> rails;
    std::set<std::string> nodes;
    for (const RailPairStatus& pair : facts_.pairs) {
      if (!ShouldAnswer(pair)) continue;
      if (!Unanswered(pair, facts_.now, kRailAlarmAfter)) return;
      rails.insert(pair.key.own.nic);
      nodes.insert(pair.key.peer.node);
    }
    if (rails.empty()) return;
    Add(Kind::kBlind, "",
        absl::StrCat("no rail of this node has been answered for 10 s (", Listed(rails), "), though ",
                     nodes.size() == 1 ? "the daemon of " : "the daemons of ", Listed(nodes), nodes.size() == 1 ? " is" : " are",
                     " up: does a firewall drop UDP on the rails? Until it lets the port of `listen` (7460) through, r2ccd does not see a "
                     "silent NIC; `r2ccctl doctor` tests each rail"));
  }

  void FindWithoutPartner() {
    for (size_t i = 0; i < facts_.nics.size(); ++i) {
      std::set<std::string> without;
      std::set<std::string> of_jobs;
      bool any = false;
      for (const auto& [name, entry] : facts_.view->nodes()) {
        if (name == facts_.node || entry.state.nics.empty()) continue;
        if (const auto cable = facts_.cables.find(facts_.nics[i]); cable != facts_.cables.end() && cable->second.node != name) continue;
        if (Partner(facts_.nics, i, facts_.cables, entry.state) != nullptr) {
          any = true;
          continue;
        }
        without.insert(name);
        if (facts_.job_nodes.contains(name)) of_jobs.insert(name);
      }
      // In a mixed cluster a rail may lead to some nodes alone: that is news where a job would use it.
      const std::set<std::string>& alone = any ? of_jobs : without;
      if (!alone.empty())
        Add(Kind::kNoPartner, facts_.nics[i],
            absl::StrCat(Own(facts_.nics[i]), " has no partner on ", Listed(alone), ": no job sends to ", alone.size() == 1 ? "it" : "them",
                         " over this rail"));
    }
  }

  void FindSuspects() {
    const bool blind = std::any_of(alarms_.begin(), alarms_.end(), [](const RailAlarm& alarm) { return alarm.kind == Kind::kBlind; });
    for (const auto& [name, nic] : own_) {
      if (blind || crossed_.contains(name) || nic->state != health::NicState::kSuspect || facts_.now - nic->since < kRailAlarmAfter)
        continue;
      std::vector<NicKey> silent;
      for (const RailPairStatus& pair : facts_.pairs)
        if (pair.key.own.nic == name && ShouldAnswer(pair) && Unanswered(pair, facts_.now, kDaemonAwake)) silent.push_back(pair.key.peer);
      Add(Kind::kSuspect, name,
          absl::StrCat(name, " is SUSPECT for 10 s", silent.empty() ? "" : absl::StrCat(": no answer from ", Listed(Texts(silent))), "; ",
                       LookAtBothEnds({facts_.node, name}, InterfaceOf(*nic), silent), "; `r2ccctl nic why ", facts_.node, "/", name,
                       "` has the evidence"));
    }
  }

  const RailAlarmFacts& facts_;
  std::map<std::string, const NicStatus*> own_;  // by name
  std::set<std::string> crossed_;                // NICs of this node that crossed cables explain
  std::vector<RailAlarm> alarms_;
};

}  // namespace

std::string LookAtBothEnds(const NicKey& nic, const std::string& interface, const std::vector<NicKey>& peers) {
  std::vector<std::string> ends = {absl::StrCat(interface, " of ", nic.node)};
  for (size_t i = 0; i < std::min(peers.size(), kNamesShown); ++i) ends.push_back(peers[i].ToString());
  const char* const last = ends.size() > 1 ? " and their switch ports" : " and its switch port";
  return absl::StrCat("check ", absl::StrJoin(ends, ", "), last, "; `r2ccctl nic drain ", nic.ToString(),
                      "` keeps traffic off it meanwhile");
}

std::vector<RailAlarm> UnwatchedRails(const std::map<std::string, std::set<std::string>>& jobs) {
  std::map<std::set<std::string>, std::vector<std::string>> by_rails;
  for (const auto& [job, rails] : jobs)
    if (!rails.empty()) by_rails[rails].push_back(job);
  std::vector<RailAlarm> alarms;
  for (const auto& [rails, names] : by_rails)
    alarms.push_back({Kind::kUnwatched, "",
                      absl::StrCat(names.size() == 1 ? "job " : "jobs ", Listed(names), names.size() == 1 ? " uses " : " use ",
                                   Listed(rails), ", which r2ccd does not watch: name it in nics, or the NICs of r2ccd in R2CC_RAILS")});
  return alarms;
}

std::vector<RailPairStatus> MayBeCrossed(const RailAlarmFacts& facts) {
  const Finder finder(facts);
  std::vector<RailPairStatus> pairs;
  for (const RailPairStatus& pair : facts.pairs)
    if (!facts.cables.contains(pair.key.own.nic) && finder.ShouldAnswer(pair) && Unanswered(pair, facts.now, kCrossedAfter))
      pairs.push_back(pair);
  return pairs;
}

std::vector<RailAlarm> FindRailAlarms(const RailAlarmFacts& facts) { return Finder(facts).Find(); }

}  // namespace r2cc::daemon
