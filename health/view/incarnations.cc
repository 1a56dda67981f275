#include "health/view/incarnations.h"

#include <algorithm>
#include <utility>

namespace r2cc::health {

Incarnations::Judgement Incarnations::Judge(const std::string& name, uint64_t incarnation, const MessageSource& source, Nanos now) {
  Node& node = nodes_[name];
  if (node.current == 0) node.current = incarnation;
  const bool spoke = Observe(&node, incarnation, source, now);
  if (incarnation == node.current) {
    NoteCurrent(&node, source, now);
    return {};
  }
  Judgement judgement;
  judgement.known_former = std::find(node.former.begin(), node.former.end(), incarnation) != node.former.end();
  judgement.ripe_at = RipeAt(node, incarnation, source);
  if (now < judgement.ripe_at) {
    judgement.verdict = Verdict::kPending;
    judgement.current_from = node.from;
    if (spoke) NoteRival(&node, incarnation, source, judgement.known_former, now);
    return judgement;
  }
  judgement.verdict = Verdict::kTakesOver;
  judgement.before = node.current;
  judgement.silent = node.received == 0 ? 0 : now - node.received;
  TakeOver(&node, incarnation, source, now);
  return judgement;
}

bool Incarnations::Observe(Node* node, uint64_t incarnation, const MessageSource& source, Nanos now) {
  if (source.stream != 0) {
    node->streams[source.stream] = {incarnation, now, source.from};
    if (node->streams.size() <= kStreamsMax) return true;
    // Those of the current run last: no number of other streams takes its name away.
    const auto oldest = std::min_element(node->streams.begin(), node->streams.end(), [node](const auto& a, const auto& b) {
      const auto rank = [node](const Stream& stream) { return std::pair(stream.incarnation == node->current, stream.received); };
      return rank(a.second) < rank(b.second);
    });
    node->streams.erase(oldest);
    return true;
  }
  if (node->in_store == incarnation) return false;
  if (node->in_store == node->current) node->current_left_store = true;
  if (incarnation == node->current) node->current_left_store = false;
  node->in_store = incarnation;
  node->in_store_since = now;
  return true;
}

Nanos Incarnations::RipeAt(const Node& node, uint64_t incarnation, const MessageSource& source) {
  Nanos ripe = 0;
  for (const auto& [number, stream] : node.streams)
    if (number != source.stream && stream.incarnation == node.current) ripe = std::max(ripe, stream.received + kStreamAlive);
  if (source.stream != 0) return ripe;
  // A stream that has ended was still closer to that daemon than its entry.
  if (node.received != 0) ripe = std::max(ripe, node.received + kStreamAlive);
  const bool former = std::find(node.former.begin(), node.former.end(), incarnation) != node.former.end();
  const bool ordered = node.current_left_store && !former;
  return ordered ? ripe : std::max(ripe, node.in_store_since + kEntryAlive);
}

void Incarnations::TakeOver(Node* node, uint64_t incarnation, const MessageSource& source, Nanos now) {
  std::erase(node->former, incarnation);
  node->former.push_back(node->current);
  if (node->former.size() > kFormerMax) node->former.pop_front();
  node->current = incarnation;
  node->from = source.from;
  node->received = source.stream != 0 ? now : 0;
  node->current_left_store = false;
  // The store's entry of another run may be left over: it counts if it outlasts its lease from now on.
  if (node->in_store != incarnation) node->in_store_since = now;
  node->rival = {};
  node->duplicate_reported = false;
}

void Incarnations::NoteCurrent(Node* node, const MessageSource& source, Nanos now) {
  if (source.stream == 0) {
    if (node->from.empty()) node->from = source.from;
    return;
  }
  node->from = source.from;
  node->received = now;
  const Rival& rival = node->rival;
  // In the store the other one has put its entry over the current one's, and it is still there.
  const bool speaks =
      rival.over_stream ? now - rival.last_received < kStreamAlive : node->current_left_store && node->in_store == rival.incarnation;
  const bool both = rival.incarnation != 0 && now - rival.first_received >= kInFlight && speaks;
  if (both && !std::exchange(node->duplicate_reported, true)) node->duplicate = {true, node->from, rival.from};
}

void Incarnations::NoteRival(Node* node, uint64_t incarnation, const MessageSource& source, bool former, Nanos now) {
  Rival& rival = node->rival;
  if (rival.incarnation != incarnation) {
    rival = {incarnation, source.from, source.stream != 0, now, now};
    node->duplicate_reported = false;
  }
  rival.last_received = now;
  // In the store each puts its entry over the other's: one that was replaced there and is back is alive.
  const bool back = former && source.stream == 0 && node->current_left_store;
  if (back && !std::exchange(node->duplicate_reported, true)) node->duplicate = {true, node->from, source.from};
}

Incarnations::Duplicate Incarnations::TakeDuplicate(const std::string& node) {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? Duplicate{} : std::exchange(found->second.duplicate, {});
}

bool Incarnations::EntryIsCurrent(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found != nodes_.end() && found->second.in_store != 0 && found->second.in_store == found->second.current;
}

bool Incarnations::EntryIs(const std::string& name, uint64_t incarnation) const {
  const auto found = nodes_.find(name);
  return found != nodes_.end() && found->second.in_store == incarnation;
}

void Incarnations::StreamEnded(uint64_t stream) {
  for (auto& [name, node] : nodes_) node.streams.erase(stream);
}

void Incarnations::EntryGone(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  if (node.in_store != 0 && node.in_store == node.current) node.current_left_store = true;
  node.in_store = 0;
}

void Incarnations::StoreLost() {
  for (auto& [name, node] : nodes_) {
    node.in_store = 0;
    node.current_left_store = false;
  }
}

uint64_t Incarnations::Current(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? 0 : found->second.current;
}

}  // namespace r2cc::health
