// The sender's end of a session under a peer that is well-formed and means no good: any frames in any state, any rails in its greeting,
// while the job posts and closes and the transport does what the session asks. A chunk that is handed out always is the right piece of a
// message whose buffer, or copy, is still there, and nothing ends the process.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/link/send_session.h"
#include "tests/fuzz/frames.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc;       // NOLINT
using namespace r2cc::net;  // NOLINT

std::byte PatternAt(FlowId flow, MessageId message, uint64_t offset) {
  return static_cast<std::byte>((flow * 101 + message * 37 + offset * 11) % 251 + 1);
}

class World {
 public:
  explicit World(fuzz::Input input) : input_(input), session_(Options(&input_, &rails_), now_) {}

  void Run() {
    for (int step = 0; step < 400 && !input_.empty(); ++step) {
      Step();
      Settle();
      CheckProgress();
    }
  }

 private:
  struct Flow {
    MessageId posted_through = 0;
    MessageId done_through = 0;
    std::map<MessageId, std::unique_ptr<std::byte[]>> buffers;
    std::map<MessageId, uint64_t> sizes;
  };

  static SendSession::Options Options(fuzz::Input* input, uint16_t* rails) {
    SendSession::Options options;
    *rails = options.local_rails = static_cast<uint16_t>(1 + input->Below(3));
    options.chunk_base_bytes = 1024;
    options.eager_bytes = input->TakeBool() ? 512 : 0;
    options.deadline = 2 * kNanosPerSecond;
    constexpr StripeMode kModes[] = {StripeMode::kOneRail, StripeMode::kMigrate, StripeMode::kBalance};
    options.mode = kModes[input->Below(std::size(kModes))];
    options.peer = "peer";
    return options;
  }

  LinkId TakeLink() { return static_cast<LinkId>(input_.Below(static_cast<size_t>(session_.links().count()) + 1)); }
  Incarnation IncarnationOf(LinkId link) const { return link < session_.links().count() ? session_.links().incarnation(link) : 0; }
  std::map<FlowId, Flow>::iterator TakeFlow() {
    if (flows_.empty()) return flows_.end();
    return std::next(flows_.begin(), static_cast<ptrdiff_t>(input_.Below(flows_.size())));
  }

  void Step() {
    switch (input_.Below(16)) {
      case 0:
      case 1:
      case 2:
      case 3: return Frame();
      case 4: return Oob();
      case 5: return Link();
      case 6: return Rails();
      case 7:
        if (flows_.size() < 5) flows_[session_.OpenFlow(input_.Below(3), static_cast<uint16_t>(input_.Below(rails_)), now_)];
        return;
      case 8:
      case 9:
      case 10: return Post();
      case 11: return Close();
      case 12:
      case 13:
      case 14: return Pull();
      default: now_ += static_cast<Nanos>(input_.Below(256)) * kNanosPerMs; return session_.Tick(now_);
    }
  }

  void Frame() {
    const ChannelId channel = static_cast<ChannelId>(TakeLink()) - 1;
    const auto it = flows_.begin();
    net::Frame frame;
    if (fuzz::TakeFrame(&input_, channel < 0 ? 0 : IncarnationOf(static_cast<LinkId>(channel)),
                        it == flows_.end() ? 0 : session_.flows().at(it->first).ledger.acked_through(), &frame))
      session_.Receive(channel, frame, now_);
  }

  void Oob() {
    switch (input_.Below(7)) {
      case 6: return session_.OobUngreeted(now_);
      case 0:
      case 1: return session_.OobDown(fuzz::TakeProbeResult(&input_), now_);
      case 2: return session_.PeerProbed(fuzz::TakeProbeResult(&input_), now_);
      default: break;
    }
    // A peer's rails never change their number: the transport refuses that.
    if (remote_rails_.empty()) remote_rails_.resize(1 + input_.Below(input_.Below(8) == 0 ? kWireRailsMax : 4));
    for (RailInfo& rail : remote_rails_) rail = {input_.TakeString(input_.Below(4)), input_.TakeBool(), {{}}};
    session_.OobUp("node", remote_rails_, now_);
    R2CC_CHECK(session_.links().count() > 0 && session_.links().count() <= kLinksMax);
  }

  void Link() {
    const LinkId link = TakeLink();
    const auto incarnation = static_cast<Incarnation>(fuzz::TakeNear(&input_, IncarnationOf(link)));
    switch (input_.Below(4)) {
      case 0: return session_.LinkTrouble(link, incarnation, plan::EvidenceCause::kSocketError, now_);
      case 1:
        if (link < session_.links().count())
          session_.link_input().Rate(link, incarnation, input_.TakeNumber(), static_cast<Nanos>(input_.TakeNumber() >> 1),
                                     input_.TakeBool(), input_.TakeBool(), now_);
        return;
      // The transport says so only of sockets that it was asked to open.
      default:
        if (link < session_.links().count() && session_.links().state(link) == InitiatorState::kConnecting)
          session_.link_input().Connected(link, session_.links().incarnation(link), now_);
        return;
    }
  }

  void Rails() {
    const auto rail = static_cast<uint16_t>(input_.Below(4));
    RailVerdict verdict;
    verdict.failed = input_.TakeBool();
    verdict.weight_permille = static_cast<uint16_t>(input_.Below(5) * 250);
    switch (input_.Below(3)) {
      case 0: return session_.LocalRail(static_cast<uint16_t>(rail % rails_), verdict.failed, now_);
      case 1: return session_.link_input().LocalVerdict(static_cast<uint16_t>(rail % rails_), verdict, now_);
      default:
        if (rail < remote_rails_.size()) session_.link_input().RemoteVerdict(rail, verdict, now_);
        return;
    }
  }

  void Post() {
    const auto it = TakeFlow();
    if (it == flows_.end() || it->second.posted_through - it->second.done_through >= 32) return;
    auto& [id, flow] = *it;
    constexpr uint64_t kSizes[] = {0, 1, 128, 300, 512, 513, 1500, 5000};
    const uint64_t bytes = kSizes[input_.Below(std::size(kSizes))];
    const MessageId message = flow.posted_through++;
    auto& buffer = flow.buffers[message];
    buffer.reset(new std::byte[bytes]);
    for (uint64_t i = 0; i < bytes; ++i) buffer[i] = PatternAt(id, message, i);
    flow.sizes[message] = bytes;
    R2CC_CHECK(session_.Post(id, buffer.get(), bytes, now_) == message);
    if (input_.TakeBool()) session_.Release(id, message);
  }

  void Close() {
    const auto it = TakeFlow();
    if (it == flows_.end()) return;
    // What was handed out was sent at once here: nothing is half-way.
    session_.CloseFlow(it->first, now_);
    closed_[it->first] = std::move(it->second.sizes);
    flows_.erase(it);
  }

  void Pull() {
    const LinkId link = TakeLink();
    const auto incarnation = static_cast<Incarnation>(input_.Below(8) == 0 ? fuzz::TakeNear(&input_, 0) : IncarnationOf(link));
    Chunk chunk;
    if (!session_.Pull(link, incarnation, &chunk, now_)) return;
    R2CC_CHECK(link < session_.links().count() && incarnation == session_.links().incarnation(link));
    const auto open = flows_.find(chunk.flow);
    const auto closed = closed_.find(chunk.flow);
    R2CC_CHECK(open != flows_.end() || closed != closed_.end());
    const auto& sizes = open != flows_.end() ? open->second.sizes : closed->second;
    R2CC_CHECK(sizes.contains(chunk.message) && sizes.at(chunk.message) == chunk.message_bytes);
    R2CC_CHECK(chunk.index < ChunkCount(chunk.message_bytes, chunk.chunk_bytes) &&
               chunk.bytes == ChunkLength(chunk.message_bytes, chunk.chunk_bytes, chunk.index));
    // Whoever has a key writes within the region alone.
    const WriteTarget target = session_.TargetOf(link, chunk);
    R2CC_CHECK(target.address + chunk.bytes >= target.address);
    for (uint32_t i = 0; i < chunk.bytes; ++i) R2CC_CHECK(chunk.data[i] == PatternAt(chunk.flow, chunk.message, chunk.offset() + i));
  }

  void Settle() {
    for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions())
      for (const SessionAction& action : actions) {
        if (action.kind != SessionAction::Kind::kSend) continue;
        R2CC_CHECK(action.channel >= kOobChannel && action.channel < static_cast<ChannelId>(session_.links().count()));
        net::Frame again;
        R2CC_CHECK(Decode(Encode(action.frame, 1), 1, &again));
      }
    session_.TakeChanged();
  }

  // What is done is the job's again at once.
  void CheckProgress() {
    for (auto& [id, flow] : flows_) {
      const MessageId done = session_.flows().at(id).ledger.done_through();
      R2CC_CHECK(done >= flow.done_through && done <= flow.posted_through && session_.flows().at(id).ledger.acked_through() <= done);
      for (; flow.done_through < done; ++flow.done_through) flow.buffers.erase(flow.done_through);
      R2CC_CHECK(session_.flows().at(id).state != SendSession::FlowState::kFailed || !session_.flows().at(id).error.empty());
    }
  }

  fuzz::Input input_;
  Nanos now_ = kNanosPerSecond;
  uint16_t rails_ = 1;
  SendSession session_;
  std::vector<RailInfo> remote_rails_;
  std::map<FlowId, Flow> flows_;
  std::map<FlowId, std::map<MessageId, uint64_t>> closed_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World(fuzz::Input(data, size)).Run();
  return 0;
}
