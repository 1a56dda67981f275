// Both ends of a session in one thread, over links and an out-of-band channel that are queues, which faults cut and silence: for tests.
#ifndef R2CC_NETPLUGIN_LINK_SESSION_WORLD_H_
#define R2CC_NETPLUGIN_LINK_SESSION_WORLD_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/link/recv_session.h"
#include "netplugin/link/send_session.h"

namespace r2cc::net {

constexpr int kRails = 3;
constexpr uint32_t kChunk = 1024;

class SessionWorld {
 public:
  explicit SessionWorld(uint64_t seed)
      : random_(seed), full_fabric_(seed % 2 == 0), sender_(SenderOptions(), now_), receiver_(ReceiverOptions(), now_) {}

  static SendSession::Options SenderOptions() {
    SendSession::Options options;
    options.local_rails = kRails;
    options.chunk_base_bytes = kChunk;
    options.eager_bytes = kChunk / 2;
    options.deadline = 600 * kNanosPerSecond;
    options.peer = "peer";
    return options;
  }
  static RecvSession::Options ReceiverOptions() {
    return {.local_rails = kRails, .remote_rails = kRails, .deadline = 600 * kNanosPerSecond, .peer = "peer"};
  }

  struct Incarnated {
    Incarnation incarnation = 0;
    bool sender_open = false, receiver_open = false, silent = false;
    std::deque<Frame> to_receiver, to_sender;
    struct InFlight {
      Chunk chunk;
      std::vector<std::byte> bytes;
    };
    std::deque<InFlight> bulk;
    bool half_read = false;
    std::byte* destination = nullptr;
  };

  // ---- the network ----

  bool Chance(int in) { return std::uniform_int_distribution<int>(0, in - 1)(random_) == 0; }
  int Pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

  void Execute(const Action& action) {
    switch (action.kind) {
      case Action::Kind::kSend: {
        if (action.channel == kOobChannel) {
          if (oob_up_) (from_sender_ ? oob_to_receiver_ : oob_to_sender_).push_back(action.frame);
          return;
        }
        Incarnated& link = links_[action.channel];
        if (from_sender_ ? link.sender_open : link.receiver_open)
          (from_sender_ ? link.to_receiver : link.to_sender).push_back(action.frame);
        return;
      }
      case Action::Kind::kOpenOob: oob_wanted_ = true; return;
      case Action::Kind::kOpenLink: opening_[action.link] = action.incarnation; return;
      case Action::Kind::kProveLink: proving_[action.link] = action.incarnation; return;
      case Action::Kind::kCloseLink: {
        if (!from_sender_) closing_.emplace_back(action.link, action.incarnation);
        Incarnated& link = links_[action.link];
        if (link.incarnation != action.incarnation) return;
        (from_sender_ ? link.sender_open : link.receiver_open) = false;
        opening_.erase(action.link);
        proving_.erase(action.link);
        // Closed at once: what is in flight or unread is lost.
        link.to_receiver.clear();
        link.to_sender.clear();
        link.bulk.clear();
        link.half_read = false;
        return;
      }
      case Action::Kind::kFlowOpened: receiver_.AcceptFlow(action.flow, action.link); return;
      case Action::Kind::kLinkFenced:
        replayed_bytes_ += action.report.replayed_bytes;
        ++fences_;
        return;
      case Action::Kind::kProbePeer:
        (from_sender_ ? sender_.PeerProbed(ProbeResult::kAnswers, now_) : receiver_.PeerProbed(ProbeResult::kAnswers, now_));
        return;
      default: return;
    }
  }
  void Drain() {
    for (int i = 0; i < 100; ++i) {
      from_sender_ = true;
      auto actions = sender_.TakeActions();
      for (const Action& action : actions) Execute(action);
      from_sender_ = false;
      receiver_.Flush(now_);
      auto more = receiver_.TakeActions();
      for (const Action& action : more) Execute(action);
      if (actions.empty() && more.empty()) return;
    }
  }

  // One random thing that a network may do by itself.
  void Step() {
    now_ += Pick(3) * kNanosPerMs;
    // A close takes its time, and may fail at first.
    std::erase_if(closing_, [&](const auto& closing) {
      if (!Chance(2)) return false;
      const bool ok = Chance(2);
      receiver_.LinkClosed(closing.first, closing.second, ok, now_);
      return ok;
    });
    Drain();
    if (oob_wanted_ && Chance(4)) sender_.OobUngreeted(now_);
    if (oob_wanted_ && Chance(4)) {
      oob_wanted_ = false;
      oob_up_ = true;
      oob_to_receiver_.clear();
      oob_to_sender_.clear();
      receiver_.OobDown(now_);
      receiver_.OobUp(now_);
      sender_.OobUp("peer", std::vector<RailInfo>(kRails, RailInfo{.up = true, .endpoints = {{}}}), now_);
    }
    for (auto it = opening_.begin(); it != opening_.end();) {
      const auto [id, incarnation] = *it;
      const bool reachable = full_fabric_ || sender_.local_rail(id) == sender_.remote_rail(id);
      if (dead_.contains(id) || !reachable || !Chance(3)) {
        ++it;
        continue;
      }
      const auto offer = receiver_.Greet(id, incarnation, sender_.remote_rail(id), sender_.local_rail(id), now_);
      if (offer == RecvSession::Offer::kLater) {
        ++it;
        continue;
      }
      it = opening_.erase(it);
      if (offer == RecvSession::Offer::kRefused) {
        sender_.LinkTrouble(id, incarnation, plan::EvidenceCause::kPeerFenced, now_);
        continue;
      }
      Drain();
      links_[id] = Incarnated{.incarnation = incarnation, .sender_open = true, .receiver_open = true};
      receiver_.ChannelOpened(id, incarnation, now_);
      sender_.LinkConnected(id, incarnation, now_);
      break;
    }
    for (auto& [id, link] : links_) {
      // An end that closed shows at the other, sooner or later, unless the link is silent.
      if (link.sender_open != link.receiver_open && !link.silent && Chance(4)) {
        if (link.sender_open)
          sender_.LinkTrouble(id, link.incarnation, plan::EvidenceCause::kSocketError, now_);
        else
          receiver_.LinkTrouble(id, link.incarnation, plan::EvidenceCause::kSocketError, now_);
        Drain();
        return;
      }
      if (!link.sender_open || !link.receiver_open) continue;
      Chunk chunk;
      if (link.bulk.size() < 6 && sender_.Pull(id, link.incarnation, &chunk)) {
        Incarnated::InFlight in_flight{chunk, {}};
        if (chunk.bytes > 0) in_flight.bytes.assign(chunk.data, chunk.data + chunk.bytes);
        link.bulk.push_back(std::move(in_flight));
      }
      if (link.silent) continue;
      if (const auto proving = proving_.find(id); proving != proving_.end() && Chance(2)) {
        receiver_.Proved(id, proving->second, true);
        proving_.erase(proving);
      }
      if (!link.bulk.empty() && Chance(2)) DeliverBulk(id, &link);
      if (!link.to_receiver.empty() && Chance(2)) {
        const Frame frame = RoundTrip(link.to_receiver.front());
        link.to_receiver.pop_front();
        receiver_.Receive(id, frame, now_);
      } else if (!link.to_sender.empty() && Chance(2)) {
        const Frame frame = RoundTrip(link.to_sender.front());
        link.to_sender.pop_front();
        sender_.Receive(id, frame, now_);
      }
      Drain();
    }
    if (!oob_to_receiver_.empty() && Chance(3)) {
      const Frame frame = oob_to_receiver_.front();
      oob_to_receiver_.pop_front();
      receiver_.Receive(kOobChannel, frame, now_);
    }
    if (!oob_to_sender_.empty() && Chance(3)) {
      const Frame frame = oob_to_sender_.front();
      oob_to_sender_.pop_front();
      sender_.Receive(kOobChannel, frame, now_);
    }
    sender_.Tick(now_);
    receiver_.Tick(now_);
    Drain();
    CheckPlaced();
  }

  // Frames travel as bytes.
  static Frame RoundTrip(const Frame& frame) {
    constexpr uint32_t kTag = 7;
    const Bytes bytes = Encode(frame, kTag);
    Frame out;
    EXPECT_EQ(PacketLength(bytes), bytes.size());
    EXPECT_TRUE(Decode(bytes, kTag, &out));
    return out;
  }

  // A chunk takes two turns, so that faults find it half read.
  void DeliverBulk(LinkId id, Incarnated* link) {
    Incarnated::InFlight& front = link->bulk.front();
    if (!link->half_read) {
      if (!receiver_.Begin(id, link->incarnation, front.chunk, &link->destination)) {
        ADD_FAILURE() << "an honest sender's chunk was refused";
        return;
      }
      if (link->destination != nullptr) std::copy_n(front.bytes.begin(), front.bytes.size() / 2, link->destination);
      link->half_read = true;
      return;
    }
    if (link->destination != nullptr) {
      std::copy(front.bytes.begin(), front.bytes.end(), link->destination);
      receiver_.Finish(id, link->incarnation, front.chunk);
    }
    link->half_read = false;
    link->bulk.pop_front();
  }
  // ---- faults ----
  void CutLink(LinkId id) {
    Incarnated& link = links_[id];
    link.bulk.clear();
    link.to_receiver.clear();
    link.to_sender.clear();
    link.half_read = false;
    link.silent = true;
    dead_.insert({id, true});
    const int told = Pick(4);  // neither end, one, or both
    if (told & 1) sender_.LinkTrouble(id, link.incarnation, plan::EvidenceCause::kLinkDown, now_);
    if (told & 2) receiver_.LinkTrouble(id, link.incarnation, plan::EvidenceCause::kLinkDown, now_);
    Drain();
  }
  void HealLink(LinkId id) { dead_.erase(id); }
  void CutOob() {
    if (!oob_up_) return;
    oob_up_ = false;
    oob_to_receiver_.clear();
    oob_to_sender_.clear();
    sender_.OobDown(ProbeResult::kAnswers, now_);
    receiver_.OobDown(now_);
    Drain();
  }

  // ---- the job ----

  struct Message {
    std::vector<std::byte> sent, expected, received;
    bool placed = false, acked = false, done = false;
  };

  FlowId OpenFlow() {
    const FlowId flow = sender_.OpenFlow(1, static_cast<uint16_t>(flows_.size() % kRails), now_);
    flows_[flow];
    Drain();
    return flow;
  }

  void PostBoth(FlowId flow, size_t bytes) {
    auto& messages = flows_[flow];
    auto message = std::make_unique<Message>();
    message->sent.resize(bytes);
    for (std::byte& byte : message->sent) byte = static_cast<std::byte>(random_());
    message->expected = message->sent;
    message->received.assign(bytes + 64, std::byte{0x5a});
    // Either end may be the first.
    const bool receiver_first = Chance(2);
    if (receiver_first) receiver_.Post(flow, message->received.data(), message->received.size(), now_);
    const MessageId id = sender_.Post(flow, message->sent.data(), bytes, now_);
    sender_.Release(flow, id);
    Message* raw = message.get();
    messages.push_back(std::move(message));
    Drain();
    if (receiver_first) return;
    for (int i = Pick(5); i > 0; --i) Step();
    receiver_.Post(flow, raw->received.data(), raw->received.size(), now_);
    Drain();
  }

  void CheckPlaced() {
    for (auto& [flow, messages] : flows_) {
      if (sender_.state(flow) != SendSession::FlowState::kOpen) continue;
      const MessageId placed = receiver_.PlacedThrough(flow);
      for (MessageId id = 0; id < messages.size(); ++id) {
        Message& message = *messages[id];
        if (id < placed && !message.placed) {
          message.placed = true;
          ASSERT_EQ(receiver_.SizeOf(flow, id), message.expected.size());
          ASSERT_TRUE(std::equal(message.expected.begin(), message.expected.end(), message.received.begin()))
              << "flow " << flow << " message " << id;
          // The buffer is NCCL's now: from here on any write is one too many.
          std::fill(message.received.begin(), message.received.end(), std::byte{0xee});
        }
        if (id < sender_.AckedThrough(flow) && !message.acked) {
          message.acked = true;
          ASSERT_TRUE(message.placed) << "acknowledged before it was placed";
        }
        if (id < sender_.DoneThrough(flow) && !message.done) {
          message.done = true;
          std::fill(message.sent.begin(), message.sent.end(), std::byte{0xdd});
        }
      }
    }
  }

  bool AllDone() const {
    for (const auto& [flow, messages] : flows_)
      for (const auto& message : messages)
        if (!message->acked) return false;
    return true;
  }

  void CheckNoLateWrites() const {
    for (const auto& [flow, messages] : flows_)
      for (const auto& message : messages)
        for (const std::byte byte : message->received) ASSERT_EQ(byte, std::byte{0xee}) << "written after it was reported placed";
  }

  bool opened() const {
    for (const auto& [flow, messages] : flows_)
      if (sender_.state(flow) != SendSession::FlowState::kOpen) return false;
    return true;
  }

  std::mt19937_64 random_;
  const bool full_fabric_;
  Nanos now_ = kNanosPerSecond;
  SendSession sender_;
  RecvSession receiver_;
  std::map<LinkId, Incarnated> links_;
  std::map<LinkId, Incarnation> opening_, proving_;
  std::vector<std::pair<LinkId, Incarnation>> closing_;  // by the receiver
  std::map<LinkId, bool> dead_;
  std::deque<Frame> oob_to_receiver_, oob_to_sender_;
  bool oob_up_ = false, oob_wanted_ = false, from_sender_ = true;
  std::map<FlowId, std::vector<std::unique_ptr<Message>>> flows_;
  uint64_t replayed_bytes_ = 0, fences_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_SESSION_WORLD_H_
