#include "client/doctor/whose_fault.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/doctor/path_checks.h"

namespace r2cc::client {
namespace {

// The finding about a peer's daemon, or about one rail to one peer.
struct Way {
  std::string nic;  // empty: the daemon
  std::string peer;
  Findings findings;
};

// `facts` holds one of the two, and is the caller's to use again.
Findings CheckOne(std::vector<PeerFacts> peers, std::vector<PairFacts> pairs, Facts* facts) {
  facts->peers = std::move(peers);
  facts->pairs = std::move(pairs);
  Findings found = CheckPaths(*facts);
  // That no other node is known is true of this part of the facts alone.
  std::erase_if(found, [](const Finding& finding) { return finding.check == "paths"; });
  return found;
}

}  // namespace

bool IsOwnFault(size_t apart, size_t compared) { return compared > 1 && 2 * apart > compared; }

Findings CheckPathsByPeer(const Facts& facts) {
  if (facts.peers.empty()) return CheckPaths(facts);
  Facts part = facts;
  std::vector<Way> ways;
  for (const PeerFacts& peer : facts.peers) ways.push_back({"", peer.node, CheckOne({peer}, {}, &part)});
  for (const PairFacts& pair : facts.pairs) ways.push_back({pair.nic, pair.peer, CheckOne({}, {pair}, &part)});

  std::map<std::string, std::set<std::string>> tried;                           // peers, by NIC
  std::map<std::pair<std::string, std::string>, std::set<std::string>> failed;  // peers, by check and NIC
  for (const Way& way : ways) {
    tried[way.nic].insert(way.peer);
    for (const Finding& finding : way.findings)
      if (finding.level == Finding::Level::kFail) failed[{finding.check, way.nic}].insert(way.peer);
  }
  Findings all;
  for (Way& way : ways)
    for (Finding& finding : way.findings) {
      const size_t peers = tried[way.nic].size();
      const bool everywhere = failed[{finding.check, way.nic}].size() == peers && (!way.nic.empty() || peers > 1);
      if (finding.level == Finding::Level::kFail && !everywhere) finding.level = Finding::Level::kWarn;
      all.push_back(std::move(finding));
    }
  return all;
}

}  // namespace r2cc::client
