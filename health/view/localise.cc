#include "health/view/localise.h"

#include <algorithm>
#include <utility>

namespace r2cc::health {
namespace {

constexpr size_t kNamesShown = 4;

std::string Names(const std::vector<NicKey>& nics) {
  std::string text;
  for (size_t i = 0; i < nics.size() && i < kNamesShown; ++i) text += (i == 0 ? "" : ", ") + nics[i].ToString();
  return nics.size() > kNamesShown ? text + " and " + std::to_string(nics.size() - kNamesShown) + " more" : text;
}

size_t Nodes(const std::vector<NicKey>& nics) {
  std::set<std::string> nodes;
  for (const NicKey& nic : nics) nodes.insert(nic.node);
  return nodes.size();
}

// The others of one port, without those that are known to be down.
struct Neighbours {
  std::vector<NicKey> answering;
  std::vector<NicKey> silent;
};

Neighbours NeighboursOf(const ProbeMatrix& matrix, const NicKey& nic) {
  Neighbours found;
  for (const auto& [other, verdict] : matrix.Of(nic)) {
    if (verdict == PairVerdict::kUnknown || matrix.IsDown(other)) continue;
    (verdict == PairVerdict::kAnswering ? found.answering : found.silent).push_back(other);
  }
  return found;
}

bool Alive(const ProbeMatrix& matrix, const NicKey& nic) {
  if (matrix.ReportsItselfDead(nic)) return false;
  const auto& verdicts = matrix.Of(nic);
  return std::any_of(verdicts.begin(), verdicts.end(), [](const auto& entry) { return entry.second == PairVerdict::kAnswering; });
}

std::vector<NicKey> AliveOnes(const ProbeMatrix& matrix, const std::vector<NicKey>& nics) {
  std::vector<NicKey> alive;
  std::copy_if(nics.begin(), nics.end(), std::back_inserter(alive), [&](const NicKey& nic) { return Alive(matrix, nic); });
  return alive;
}

bool IsDead(const ProbeMatrix& matrix, const NicKey& nic) {
  if (matrix.ReportsItselfDead(nic)) return true;
  return !Alive(matrix, nic) && Nodes(AliveOnes(matrix, NeighboursOf(matrix, nic).silent)) >= 2;
}

std::string Undecided(const NicKey& a, const NicKey& b) {
  return "another node that probes both " + a.ToString() + " and " + b.ToString() + " on this rail";
}

// `nic` answers somebody.
Fault FaultOfAnswering(const ProbeMatrix& matrix, const NicKey& nic, const Neighbours& around) {
  Fault path{FaultKind::kPath, {}, around.answering, "", false};
  Fault undecided{FaultKind::kInconclusive, {}, around.answering, "", false};
  Fault peers{FaultKind::kPeers, {}, around.answering, "", false};
  for (const NicKey& other : around.silent) {
    if (Alive(matrix, other)) {
      path.peers.push_back(other);
    } else if (IsDead(matrix, other)) {
      peers.peers.push_back(other);
    } else {
      undecided.peers.push_back(other);
      undecided.missing = Undecided(nic, other);
    }
  }
  if (!path.peers.empty()) return path;
  return undecided.peers.empty() ? peers : undecided;
}

// `nic` answers nobody.
Fault FaultOfSilent(const ProbeMatrix& matrix, const NicKey& nic, const Neighbours& around) {
  const std::vector<NicKey>& silent = around.silent;
  const std::vector<NicKey> alive = AliveOnes(matrix, silent);
  if (silent.size() == 1 && matrix.IsCable(nic, silent.front())) return {FaultKind::kCable, silent, {}, "", true};
  if (Nodes(alive) >= 2) return {FaultKind::kPort, silent, alive, "", true};
  // A port that others find dead explains the silence to it.
  std::vector<NicKey> open = silent;
  std::erase_if(open, [&](const NicKey& other) { return IsDead(matrix, other); });
  if (open.empty()) return {FaultKind::kPeers, silent, {}, "", false};
  const bool unusable = Nodes(open) >= 2;
  if (unusable && alive.empty()) return {FaultKind::kRail, silent, {}, "", true};
  return {FaultKind::kInconclusive, open, alive, Undecided(nic, open.front()), unusable};
}

}  // namespace

void ProbeMatrix::Add(const NicKey& a, const NicKey& b, PairVerdict verdict) {
  PairVerdict& there = verdicts_[a][b];
  if (there == PairVerdict::kSilent || verdict == PairVerdict::kUnknown) return;
  there = verdict;
  verdicts_[b][a] = verdict;
}

void ProbeMatrix::AddCable(const NicKey& a, const NicKey& b) {
  cables_.insert({a, b});
  cables_.insert({b, a});
}

const ProbeMatrix::Verdicts& ProbeMatrix::Of(const NicKey& nic) const {
  static const Verdicts kNone;
  const auto found = verdicts_.find(nic);
  return found == verdicts_.end() ? kNone : found->second;
}

bool IsSharper(FaultKind kind, FaultKind before) {
  const auto rank = [](FaultKind of) {
    switch (of) {
      case FaultKind::kNone: return 0;
      case FaultKind::kInconclusive: return 1;
      case FaultKind::kRail: return 2;
      case FaultKind::kPath:
      case FaultKind::kPeers: return 3;
      case FaultKind::kPort:
      case FaultKind::kCable: return 4;
    }
    return 0;
  };
  return rank(kind) > rank(before);
}

const char* FaultKindName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kNone: return "none";
    case FaultKind::kPort: return "port";
    case FaultKind::kPath: return "path";
    case FaultKind::kPeers: return "peers";
    case FaultKind::kCable: return "cable";
    case FaultKind::kRail: return "rail";
    case FaultKind::kInconclusive: return "cannot-tell";
  }
  return "unknown";
}

Fault Localise(const ProbeMatrix& matrix, const NicKey& nic) {
  if (matrix.IsDown(nic)) return {};
  const Neighbours around = NeighboursOf(matrix, nic);
  if (around.silent.empty()) return {};
  return around.answering.empty() ? FaultOfSilent(matrix, nic, around) : FaultOfAnswering(matrix, nic, around);
}

std::string FaultText(const NicKey& nic, const Fault& fault) {
  const std::string silent = "no answer between " + nic.ToString() + " and " + Names(fault.peers);
  switch (fault.kind) {
    case FaultKind::kNone: return "";
    case FaultKind::kPort:
      return "port of " + nic.ToString() + " (NIC, cable or switch port): silent to " + Names(fault.peers) + "; " + Names(fault.auxiliary) +
             " answer others";
    case FaultKind::kPath:
      return "path between " + nic.ToString() + " and " + Names(fault.peers) + " only: both ends answer others (" + Names(fault.auxiliary) +
             " answers " + nic.ToString() + ")";
    case FaultKind::kPeers: return silent + ": port of the other end";
    case FaultKind::kCable: return "cable between " + nic.ToString() + " and " + Names(fault.peers) + ", or the port at one of its ends";
    case FaultKind::kRail: return "whole rail of " + nic.ToString() + ": no pair of it answers; its switch, or several ports";
    case FaultKind::kInconclusive: return silent + ": cannot tell which end or the path; missing: " + fault.missing;
  }
  return "";
}

std::string LargeFaultText(const NicKey& nic, const Fault& fault, const LargeLoss& loss) {
  const std::string sizes = loss.passed_bytes > 0 ? "packets over " + std::to_string(loss.passed_bytes) + " bytes are lost"
                                                  : "packets of " + std::to_string(loss.packet_bytes) + " bytes are lost";
  const std::string others = Names(fault.peers);
  const auto between = [&] {
    switch (loss.way) {
      case LargeLoss::Way::kThere: return sizes + " from " + nic.ToString() + " to " + others;
      case LargeLoss::Way::kBack: return sizes + " from " + others + " to " + nic.ToString();
      case LargeLoss::Way::kEither: break;
    }
    return sizes + " between " + nic.ToString() + " and " + others;
  };
  switch (fault.kind) {
    case FaultKind::kNone: return "";
    case FaultKind::kPort:
      return sizes + " at the port of " + nic.ToString() + " (NIC, cable or switch port): to or from " + others +
             "; these carry them to others";
    case FaultKind::kPath: return between() + ", and these two only: both carry them to others; small ones pass";
    case FaultKind::kPeers: return between() + ": port of the other end";
    case FaultKind::kCable: return between() + ": the cable, or the port at one of its ends; small ones pass";
    case FaultKind::kRail: return sizes + " on the whole rail of " + nic.ToString() + ": its switch, or several ports; small ones pass";
    case FaultKind::kInconclusive: return between() + "; small ones pass";
  }
  return "";
}

}  // namespace r2cc::health
