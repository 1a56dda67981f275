#include "netplugin/collnet/group_driver.h"

#include <algorithm>
#include <cstring>

#include "base/core/check.h"

namespace r2cc::collnet {
namespace {

using Request = FlowQueue::Request;

// From one member. A schedule has some lanes between two members, of each of which every slot has a flow.
constexpr size_t kFlowsOfMemberMax = 4096;
// Flows that were accepted and have not greeted yet.
constexpr size_t kHalfOpenMost = 4 * kFlowsOfMemberMax;
// A control message is its length and that number of bytes, or one of these codes.
using MessageLength = uint32_t;
constexpr MessageLength kReady = 0;            // the sender receives from all members to which it has a path
constexpr MessageLength kLeaves = UINT32_MAX;  // the sender's last one

MessageLength LengthOf(const Request& message) {
  MessageLength length = 0;
  std::memcpy(&length, message.own.data(), sizeof(length));
  return length;
}

}  // namespace

GroupDriver::GroupDriver(const Options& options, MemberExecutor::MakePlan make_plan, MemberExecutor::MakeSteps make_steps,
                         const Means& means)
    : options_(options),
      means_(means),
      executor_(options.group, std::move(make_plan), std::move(make_steps)),
      paths_(options.group.members) {
  for (uint32_t member = 0; member < options_.group.members; ++member) {
    if (member == options_.group.member) continue;
    Peer& peer = peers_.emplace_back();
    peer.member = member;
    peer.flow = means_.flows->Open(member);
    peer.outgoing.AddOwn(
        Request::Kind::kGreeting,
        Encode(Greeting{.group = options_.number, .members = options_.group.members, .member = options_.group.member, .control = true}));
    ExpectMessage(&peer);
  }
  CarryOut();
}

GroupDriver::~GroupDriver() {
  for (const Adding& adding : adding_) adding.reduction->Wait();
  for (Peer& peer : peers_) {
    // A path that is not lost may still come.
    if (paths_.HasPath(peer.member)) Start(&peer);
    SendCode(&peer, kLeaves);
    // Messages that have come are taken, or their sender would get the error that they were lost. After kLeaves nothing comes: a receive
    // that is posted then would be one that its sender has left outstanding.
    while (const std::optional<Request> message = peer.incoming.TakeDone()) {
      peer.left |= LengthOf(*message) == kLeaves;
      if (!peer.left) ExpectMessage(&peer);
    }
  }
  net::FlowPort* const port = means_.flows->port();
  const auto close = [port](const FlowQueue& queue) {
    if (queue.has_flow()) port->Close(queue.flow());
  };
  for (const auto& [name, queue] : sends_) close(queue);
  for (const auto& [name, queue] : receives_) close(queue);
  for (const auto& [flow, queue] : half_open_) port->Close(flow);
  for (const Peer& peer : peers_) {
    close(peer.incoming);
    port->Close(peer.flow);
  }
}

// ---- the caller ----

std::optional<OperationId> GroupDriver::Call(const Vectors& vectors, Nanos now) {
  const std::optional<OperationId> operation = executor_.Call(vectors.count, vectors.type, vectors.op, now);
  if (!operation.has_value()) return std::nullopt;
  called_ = *operation + 1;
  vectors_[*operation].vectors = vectors;
  CarryOut();
  return operation;
}

void GroupDriver::SetCapacity(uint64_t bytes_per_s) {
  executor_.SetCapacity(bytes_per_s);
  CarryOut();
}

bool GroupDriver::Poll(Nanos now) {
  bool moved = Accept();
  ObservePaths(now);
  // What the others say of a failure is heard before what it does to their flows.
  for (Peer& peer : peers_) moved |= ReceiveMessages(&peer, now);
  if (!sent_ready_ && ReceivesFromAll()) {
    sent_ready_ = true;
    for (Peer& peer : peers_) SendCode(&peer, kReady);
  }
  connected_ = connected_ || (sent_ready_ && IsConnected());
  moved |= PollFlows(now);
  moved |= PollReductions(now);
  LookForErrors();
  executor_.Tick(now);
  CarryOut();
  return moved;
}

// ---- actions ----

void GroupDriver::CarryOut() {
  for (MemberAction& action : executor_.TakeActions()) Do(std::move(action));
  FollowPlan();
}

void GroupDriver::FollowPlan() {
  const Stamp* const plan = executor_.newest_plan();
  if (plan == nullptr || plan->epoch == followed_) return;
  followed_ = plan->epoch;
  dealt_ = IsUneven(plan->plan);
  for (auto& [name, queue] : sends_) queue.SetDealt(dealt_);
}

void GroupDriver::Do(MemberAction action) {
  switch (action.kind) {
    case MemberAction::Kind::kBegin: {
      Open& open = vectors_.at(action.operation);
      open.staging = means_.staging->Take(static_cast<Slot>(action.operation % options_.group.slots), action.bytes, open.vectors.result);
      return;
    }
    case MemberAction::Kind::kWeight: return Sends(action.flow)->SetWeight(action.weight);
    case MemberAction::Kind::kOffer: return Sends(action.flow)->AddOwn(Request::Kind::kOffer, std::move(action.message));
    case MemberAction::Kind::kExpect: return Receives(action.flow)->AddOwn(Request::Kind::kOffer, Bytes(action.bytes));
    case MemberAction::Kind::kSend: return Sends(action.flow)->AddBytes(At(action.operation, action.place), action.bytes);
    case MemberAction::Kind::kReceive: return Receives(action.flow)->AddBytes(At(action.operation, action.place), action.bytes);
    case MemberAction::Kind::kReduce: return BeginReduction(action);
    case MemberAction::Kind::kDone: vectors_.erase(action.operation); return;
    case MemberAction::Kind::kMessage: return SendMessage(Of(action.peer), std::move(action.message));
    case MemberAction::Kind::kFail: return;  // the executor has the line
  }
}

net::Buffer GroupDriver::At(OperationId operation, const AreaPlace& place) const {
  const Open& open = vectors_.at(operation);
  const net::Buffer& area = place.area == Area::kContribution ? open.vectors.contribution
                            : place.area == Area::kResult     ? open.vectors.result
                                                              : open.staging;
  return {area.data + place.offset, area.memory};
}

void GroupDriver::BeginReduction(const MemberAction& action) {
  const Vectors& vectors = vectors_.at(action.operation).vectors;
  std::vector<net::Buffer> sources;
  for (const AreaPlace& place : action.sources) sources.push_back(At(action.operation, place));
  adding_.push_back({action.operation, action.block,
                     means_.reducer->Begin(vectors.type, vectors.op, sources, At(action.operation, action.place),
                                           action.bytes / ElementBytes(vectors.type))});
}

FlowQueue* GroupDriver::Sends(const FlowName& name) {
  const auto [it, is_new] = sends_.try_emplace(name, FlowQueue::Direction::kSends);
  if (is_new) {
    it->second.SetFlow(means_.flows->port(), means_.flows->Open(name.peer));
    it->second.AddOwn(Request::Kind::kGreeting, Encode(Greeting{.group = options_.number,
                                                                .members = options_.group.members,
                                                                .member = options_.group.member,
                                                                .slot = name.slot,
                                                                .from_lane = name.from_lane,
                                                                .to_lane = name.to_lane}));
    it->second.SetDealt(dealt_);
  }
  return &it->second;
}

// ---- messages ----

void GroupDriver::SendMessage(Peer* peer, Bytes message) {
  R2CC_CHECK(message.size() <= MessageBytesMax(options_.group.members));
  const auto length = static_cast<MessageLength>(message.size());
  message.insert(message.begin(), sizeof(length), std::byte{});
  std::memcpy(message.data(), &length, sizeof(length));
  peer->outgoing.AddOwn(Request::Kind::kMessage, std::move(message));
  // Nobody polls a driver that has failed.
  peer->outgoing.Post();
}

void GroupDriver::ExpectMessage(Peer* peer) {
  peer->incoming.AddOwn(Request::Kind::kMessage, Bytes(sizeof(MessageLength) + MessageBytesMax(options_.group.members)));
}

void GroupDriver::SendCode(Peer* peer, uint32_t code) {
  Bytes message(sizeof(code));
  std::memcpy(message.data(), &code, sizeof(code));
  peer->outgoing.AddOwn(Request::Kind::kMessage, std::move(message));
  peer->outgoing.Post();
}

bool GroupDriver::ReceiveMessages(Peer* peer, Nanos now) {
  bool moved = false;
  while (peer->outgoing.TakeDone().has_value()) moved = true;
  while (const std::optional<Request> message = peer->incoming.TakeDone()) {
    moved = true;
    const MessageLength length = LengthOf(*message);
    if (length == kLeaves) {
      peer->left = true;
      continue;
    }
    ExpectMessage(peer);
    if (length == kReady) {
      peer->ready = true;
      continue;
    }
    if (length > message->own.size() - sizeof(length))
      executor_.PeerFailed(peer->member, "a message of " + std::to_string(length) + " bytes");
    else
      executor_.MessageReceived(peer->member, std::span(message->own).subspan(sizeof(length), length), now);
    CarryOut();
  }
  return moved;
}

// ---- paths ----

void GroupDriver::Start(Peer* peer) {
  if (!peer->outgoing.has_flow()) peer->outgoing.SetFlow(means_.flows->port(), peer->flow);
}

void GroupDriver::StartIfPath(net::FlowRef flow, FlowQueue* queue) {
  if (!queue->has_flow() && means_.flows->port()->HasPath(flow)) queue->SetFlow(means_.flows->port(), flow);
}

void GroupDriver::ObservePaths(Nanos now) {
  if (now - observed_ < (connected_ ? net::tuning::kObserveEvery : net::tuning::kObserveEveryFirst)) return;
  observed_ = now;
  net::FlowPort* const port = means_.flows->port();
  bool changed = false;
  for (Peer& peer : peers_) {
    const bool up = port->HasPath(peer.flow);
    if (up) Start(&peer);
    changed |= paths_.Observe(peer.member, up, connected_, now);
  }
  for (auto& [flow, queue] : half_open_) StartIfPath(flow, &queue);
  if (!changed) return;
  unreachable_ = paths_.Unreachable();
  executor_.SetUnreachable(unreachable_);
  CarryOut();
}

bool GroupDriver::ReceivesFromAll() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [this](const Peer& peer) { return peer.incoming.has_flow() || !paths_.HasPath(peer.member); });
}

// With somebody who can add up for all.
bool GroupDriver::IsConnected() const {
  const std::vector<bool> reach_all = executor_.states().ReachAll();
  return std::find(reach_all.begin(), reach_all.end(), true) != reach_all.end() &&
         std::all_of(peers_.begin(), peers_.end(), [this](const Peer& peer) { return IsConnected(peer); });
}

// The two receive from each other, or both receive from a third member.
bool GroupDriver::IsConnected(const Peer& peer) const {
  if (peer.ready && peer.outgoing.idle()) return true;
  if (paths_.HasPath(peer.member)) return false;
  const MemberStates& states = executor_.states();
  if (options_.group.member == 0 && !states.Knows(peer.member)) return false;
  return std::any_of(peers_.begin(), peers_.end(), [&](const Peer& between) {
    return between.ready && between.member != peer.member && states.HavePath(between.member, peer.member) &&
           states.HavePath(between.member, options_.group.member);
  });
}

// ---- flows ----

bool GroupDriver::Accept() {
  bool moved = false;
  while (const std::optional<net::FlowRef> flow = means_.flows->Accept()) {
    // The number of flows without a greeting is bounded.
    if (half_open_.size() >= kHalfOpenMost) {
      means_.flows->port()->Close(*flow);
      continue;
    }
    FlowQueue& queue = half_open_.try_emplace(*flow, FlowQueue::Direction::kReceives).first->second;
    queue.AddOwn(Request::Kind::kGreeting, Bytes(kGreetingBytes));
    StartIfPath(*flow, &queue);
    moved = true;
  }
  for (auto it = half_open_.begin(); it != half_open_.end();) {
    const std::optional<Request> greeting = it->second.TakeDone();
    if (!greeting.has_value()) {
      ++it;
      continue;
    }
    Greeted(it->first, greeting->own);
    it = half_open_.erase(it);
    moved = true;
  }
  return moved;
}

std::string GroupDriver::Judge(const Greeting& greeting) {
  const std::string who = "member " + std::to_string(greeting.member);
  if (greeting.members != options_.group.members)
    return who + " has a group of " + std::to_string(greeting.members) + " members, here " + std::to_string(options_.group.members);
  if (greeting.member >= options_.group.members || greeting.member == options_.group.member) return who + " is none that has a flow to us";
  if (greeting.control) return Of(greeting.member)->incoming.has_flow() ? who + " has two control flows" : "";
  if (greeting.slot >= options_.group.slots) return who + " uses slot " + std::to_string(greeting.slot);
  const FlowName first{greeting.member, 0, 0, 0}, next{greeting.member + 1, 0, 0, 0};
  size_t flows = 0;
  for (auto it = receives_.lower_bound(first); it != receives_.end() && it->first < next; ++it) flows += it->second.has_flow() ? 1 : 0;
  return flows < kFlowsOfMemberMax ? "" : who + " has more than " + std::to_string(kFlowsOfMemberMax) + " flows";
}

void GroupDriver::Greeted(net::FlowRef flow, std::span<const std::byte> bytes) {
  std::string why;
  const std::optional<Greeting> greeting = DecodeGreeting(bytes, &why);
  // A flow of a group that was here before, or that went to the wrong place, is no fault of this one.
  if (greeting.has_value() && greeting->group != options_.number) return means_.flows->port()->Close(flow);
  if (greeting.has_value()) why = Judge(*greeting);
  FlowQueue* queue = nullptr;
  if (why.empty())
    queue = greeting->control ? &Of(greeting->member)->incoming
                              : Receives({greeting->member, greeting->slot, greeting->from_lane, greeting->to_lane});
  if (queue != nullptr && queue->has_flow()) why = "member " + std::to_string(greeting->member) + " has two flows of one name";
  if (!why.empty()) {
    means_.flows->port()->Close(flow);
    executor_.GiveUp("a flow that cannot be one of this group: " + why);
    return CarryOut();
  }
  // Its first request was the greeting; those that the queue has begin after it.
  queue->SetFlow(means_.flows->port(), flow, 1);
}

bool GroupDriver::PollFlows(Nanos now) {
  bool moved = false;
  // Actions may add flows while these are looked at; a map's entries stay where they are.
  for (auto& [name, queue] : sends_) {
    while (const std::optional<Request> sent = queue.TakeDone()) {
      moved = true;
      if (sent->kind != Request::Kind::kBytes) continue;
      executor_.SendDone(name, now);
      CarryOut();
    }
  }
  for (auto& [name, queue] : receives_) {
    while (const std::optional<Request> received = queue.TakeDone()) {
      moved = true;
      // What is missing of a message would be the bytes of an earlier one.
      if (received->came_bytes != received->bytes)
        executor_.PeerFailed(
            name.peer, "it sent " + std::to_string(received->came_bytes) + " bytes of a message of " + std::to_string(received->bytes));
      else if (received->kind == Request::Kind::kOffer)
        executor_.OfferReceived(name, received->own, now);
      else
        executor_.ReceiveDone(name, now);
      CarryOut();
    }
  }
  return moved;
}

bool GroupDriver::PollReductions(Nanos now) {
  bool moved = false;
  for (size_t i = 0; i < adding_.size();) {
    if (!adding_[i].reduction->done()) {
      ++i;
      continue;
    }
    const Adding done = std::move(adding_[i]);
    adding_[i] = std::move(adding_.back());
    adding_.pop_back();
    moved = true;
    if (const std::string error = done.reduction->error(); !error.empty())
      executor_.GiveUp(error);
    else
      executor_.ReduceDone(done.operation, done.block, now);
    CarryOut();
  }
  return moved;
}

void GroupDriver::LookForErrors() {
  const auto look = [this](uint32_t member, const FlowQueue& queue) {
    if (executor_.failed() || queue.idle()) return;
    if (const std::string error = queue.Error(); !error.empty()) executor_.PeerFailed(member, error);
  };
  // Whoever has nothing more to say may go. A way that is gone shows where bytes should come.
  for (const Peer& peer : peers_) {
    const bool stamps = peer.member == 0 && executor_.waits_for_stamp() && executor_.states().HavePath(options_.group.member, 0);
    if (connected_ && !stamps) continue;
    if (const std::string error = means_.flows->port()->Error(peer.flow); !error.empty() && !executor_.failed() && !peer.outgoing.idle())
      executor_.PeerFailed(peer.member, error);
    look(peer.member, peer.incoming);
    if (peer.left && !executor_.failed()) executor_.PeerFailed(peer.member, "it has left");
  }
  for (const auto& [name, queue] : sends_) look(name.peer, queue);
  for (const auto& [name, queue] : receives_) look(name.peer, queue);
}

}  // namespace r2cc::collnet
