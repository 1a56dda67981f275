// The receiver's end of a session under a peer that is well-formed and means no good: any frames, greetings and chunk headers in any state,
// while the job posts and closes and the transport does what the session asks. Bytes go only into buffers that the session may still use,
// a message counts as placed only when every byte of it was written, and nothing ends the process.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "netplugin/link/recv_session.h"
#include "tests/fuzz/frames.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc;       // NOLINT
using namespace r2cc::net;  // NOLINT

std::byte PatternAt(MessageId message, uint64_t offset) { return static_cast<std::byte>((message * 37 + offset * 11) % 251 + 1); }

class World {
 public:
  explicit World(fuzz::Input input) : input_(input), session_(Options(&input_), now_) {}

  void Run() {
    for (int step = 0; step < 400 && !input_.empty(); ++step) {
      Step();
      Settle();
      CheckProgress();
    }
  }

 private:
  // A buffer of the job's, of just this size; freed as soon as the session has no business there any more.
  struct Posted {
    std::unique_ptr<std::byte[]> data;
    uint64_t capacity = 0;
  };
  struct Flow {
    MessageId posted_through = 0;
    MessageId placed_through = 0;
    std::map<MessageId, Posted> posted;
  };
  // A chunk that a socket is in the middle of.
  struct HalfRead {
    LinkId link = 0;
    Incarnation incarnation = 0;
    Chunk header;
    std::byte* destination = nullptr;
    bool begun = false;
  };

  static RecvSession::Options Options(fuzz::Input* input) {
    RecvSession::Options options;
    options.local_rails = static_cast<uint16_t>(1 + input->Below(3));
    options.remote_rails = static_cast<uint16_t>(1 + input->Below(3));
    options.deadline = 2 * kNanosPerSecond;
    options.peer = "peer";
    return options;
  }

  LinkId TakeLink() { return static_cast<LinkId>(input_.Below(static_cast<size_t>(session_.links().count()) + 1)); }
  LinkId TakeOwnLink() { return static_cast<LinkId>(input_.Below(session_.links().count())); }
  FlowId TakeFlow() { return static_cast<FlowId>(input_.Below(5)); }

  void Step() {
    switch (input_.Below(16)) {
      case 0:
      case 1:
      case 2: return Frame();
      case 3: return Oob();
      case 4: return Greet();
      case 5: {
        const LinkId link = TakeOwnLink();
        if (closing_.contains(link)) return EndClose(link, true);
        return session_.LinkTrouble(link, session_.links().incarnation(link), plan::EvidenceCause::kSocketError, now_);
      }
      case 6: return Rails();
      case 7:
      case 8: return Post();
      case 9: return Close();
      case 10:
      case 11:
      case 12: return Begin();
      case 13:
      case 14: return Finish();
      default: now_ += static_cast<Nanos>(input_.Below(256)) * kNanosPerMs; return session_.Tick(now_);
    }
  }

  void Frame() {
    const ChannelId channel = static_cast<ChannelId>(TakeLink()) - 1;
    const Incarnation incarnation = channel < 0 ? 0 : session_.links().incarnation(static_cast<LinkId>(channel));
    net::Frame frame;
    if (fuzz::TakeFrame(&input_, incarnation, 0, &frame)) session_.Receive(channel, frame, now_);
  }

  void Oob() {
    switch (input_.Below(4)) {
      case 0: return session_.OobUp(now_);
      case 1: return session_.OobDown(now_);
      default: return session_.PeerProbed(fuzz::TakeProbeResult(&input_), now_);
    }
  }

  void Greet() {
    const auto link = input_.Below(8) == 0 ? static_cast<LinkId>(input_.Below(kLinksMax)) : TakeLink();
    const Incarnation known = link < session_.links().count() ? session_.links().incarnation(link) : 0;
    const auto incarnation = static_cast<Incarnation>(fuzz::TakeNear(&input_, known));
    const bool honest = link < session_.links().count() && input_.Below(4) != 0;
    const auto local = honest ? session_.links().local_rail(link) : static_cast<uint16_t>(fuzz::TakeNear(&input_, 0));
    const auto remote = static_cast<uint16_t>(fuzz::TakeNear(&input_, link));
    const auto offer = session_.Greet(link, incarnation, local, remote, now_);
    Settle();  // closes the incarnation before
    if (offer == RecvSession::Admission::kLater && session_.Greet(link, incarnation, local, remote, now_) == RecvSession::Admission::kLater)
      return;
    if (offer == RecvSession::Admission::kRefused || session_.links().incarnation(link) != incarnation) return;
    R2CC_CHECK(link < session_.links().count());
    switch (input_.Below(3)) {
      case 0: return session_.ChannelOpened(link, incarnation, now_);
      case 1: return session_.Proved(link, incarnation, input_.TakeBool());
      default: session_.ChannelOpened(link, incarnation, now_); return session_.Proved(link, incarnation, true);
    }
  }

  void Rails() {
    const auto rail = static_cast<uint16_t>(input_.Below(4));
    const bool bad = input_.TakeBool();
    switch (input_.Below(3)) {
      case 0: return session_.LocalRail(rail, !bad, now_);
      case 1: return session_.LocalVerdict(rail, bad, now_);
      default: return session_.RemoteVerdict(rail, bad, now_);
    }
  }

  void Post() {
    const auto it = flows_.find(TakeFlow());
    if (it == flows_.end() || it->second.posted.size() >= 64) return;
    constexpr uint64_t kSizes[] = {0, 1, 128, 300, 1024, 1500, 4096};
    Posted posted;
    posted.capacity = kSizes[input_.Below(std::size(kSizes))];
    posted.data.reset(new std::byte[posted.capacity]());
    std::byte* data = posted.data.get();
    const uint64_t capacity = posted.capacity;
    const MessageId id = it->second.posted_through++;
    it->second.posted[id] = std::move(posted);
    R2CC_CHECK(session_.Post(it->first, data, capacity, now_) == id);
  }

  void Close() {
    const FlowId flow = TakeFlow();
    if (!flows_.contains(flow)) return;
    // The transport reads the rest of a half-read chunk into nothing.
    std::erase_if(half_read_, [flow](const HalfRead& half) { return half.header.flow == flow; });
    session_.CloseFlow(flow, {}, now_);
    flows_.erase(flow);
  }

  void Begin() {
    const LinkId link = TakeLink();
    const Incarnation known = link < session_.links().count() ? session_.links().incarnation(link) : 0;
    Chunk header;
    header.flow = TakeFlow();
    const auto it = flows_.find(header.flow);
    header.message = fuzz::TakeNear(&input_, it == flows_.end() ? 0 : it->second.placed_through);
    header.eager = input_.TakeBool();
    header.chunk_bytes = fuzz::TakeChunkBytes(&input_);
    constexpr uint64_t kSizes[] = {0, 1, 128, 300, 1024, 1500, 4096, 70'000, kMessageBytesMax};
    header.message_bytes = kSizes[input_.Below(std::size(kSizes))];
    header.index = static_cast<uint32_t>(fuzz::TakeNear(&input_, 0));
    header.bytes = static_cast<uint32_t>(std::min<uint64_t>(header.message_bytes, header.chunk_bytes));
    if (header.chunk_bytes > 0 && header.index < kChunksMax && header.offset() < header.message_bytes)
      header.bytes = ChunkLength(header.message_bytes, header.chunk_bytes, header.index);
    if (input_.Below(16) == 0) header.bytes = static_cast<uint32_t>(input_.TakeNumber()) % kBulkBytesMax;
    HalfRead half{link, known, header, nullptr, false};
    if (input_.Below(16) == 0) half.incarnation = static_cast<Incarnation>(fuzz::TakeNear(&input_, known));
    if (!session_.Begin(link, half.incarnation, header, &half.destination)) {
      R2CC_CHECK(half.destination == nullptr);
      return session_.LinkTrouble(link, half.incarnation, plan::EvidenceCause::kGarbled, now_);
    }
    if (half.destination == nullptr) return;
    R2CC_CHECK(it != flows_.end() && header.bytes <= 70'000);
    // No two sockets are given the same bytes.
    for (const HalfRead& other : half_read_)
      R2CC_CHECK(half.destination + header.bytes <= other.destination || other.destination + other.header.bytes <= half.destination);
    half_read_.push_back(half);
    Write(half_read_.back(), 0, header.bytes / 2);
  }

  void Write(const HalfRead& half, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i) half.destination[i] = PatternAt(half.header.message, half.header.offset() + i);
  }

  void Finish() {
    if (half_read_.empty()) return;
    const size_t index = input_.Below(half_read_.size());
    const HalfRead half = half_read_[index];
    // As the transport: a link that ended earlier in this round is not read any more.
    if (!session_.links().up(half.link) || session_.links().incarnation(half.link) != half.incarnation) return;
    Write(half, half.header.bytes / 2, half.header.bytes);
    half_read_.erase(half_read_.begin() + static_cast<ptrdiff_t>(index));
    session_.Finish(half.link, half.incarnation, half.header);
  }

  void Settle() {
    session_.Flush(now_);
    for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions()) {
      for (const SessionAction& action : actions) Execute(action);
      session_.Flush(now_);
    }
    session_.TakeChanged();
  }

  void Execute(const SessionAction& action) {
    switch (action.kind) {
      case SessionAction::Kind::kSend: {
        R2CC_CHECK(action.channel >= kOobChannel && action.channel < static_cast<ChannelId>(session_.links().count()));
        net::Frame again;
        R2CC_CHECK(Decode(Encode(action.frame, 1), 1, &again));
        return;
      }
      case SessionAction::Kind::kCloseLink:
        R2CC_CHECK(!closing_.contains(action.link));
        closing_[action.link] = action.incarnation;
        return EndClose(action.link, input_.Below(4) != 0);
      case SessionAction::Kind::kFlowOpened:
        if (action.number % 4 == 3) return session_.RefuseFlow(action.flow);
        flows_[action.flow];
        return session_.AcceptFlow(action.flow, action.link);
      default: return;
    }
  }

  // The transport ends a link sooner or later, or cannot for now: what half-read chunks of it still write is seen by CheckProgress().
  void EndClose(LinkId link, bool ok) {
    const auto it = closing_.find(link);
    if (it == closing_.end()) return;
    const Incarnation incarnation = it->second;
    if (ok) {
      std::erase_if(half_read_, [&](const HalfRead& half) { return half.link == link; });
      closing_.erase(it);
    }
    session_.LinkClosed(link, incarnation, ok, now_);
  }

  void CheckProgress() {
    for (auto& [id, flow] : flows_) {
      const MessageId placed = session_.flows().at(id).ledger.placed_through();
      R2CC_CHECK(placed >= flow.placed_through && placed <= flow.posted_through);
      for (; flow.placed_through < placed; ++flow.placed_through) {
        const Posted& posted = flow.posted.at(flow.placed_through);
        const uint64_t bytes = session_.flows().at(id).ledger.SizeOf(flow.placed_through);
        R2CC_CHECK(bytes <= posted.capacity);
        for (uint64_t i = 0; i < bytes; ++i) R2CC_CHECK(posted.data[i] == PatternAt(flow.placed_through, i));
        flow.posted.erase(flow.placed_through);
      }
    }
  }

  fuzz::Input input_;
  Nanos now_ = kNanosPerSecond;
  RecvSession session_;
  std::map<FlowId, Flow> flows_;
  std::vector<HalfRead> half_read_;
  std::map<LinkId, Incarnation> closing_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World(fuzz::Input(data, size)).Run();
  return 0;
}
