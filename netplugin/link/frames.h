// Defines the control frames: one struct per type, which has only the fields of that type. S>R: from the initiator (sender) to the
// acceptor.
//
// On the wire all types have the same fields (see frames.cc), and each type uses a few. Unused fields are sent as zero and not read.
#ifndef R2CC_NETPLUGIN_LINK_FRAMES_H_
#define R2CC_NETPLUGIN_LINK_FRAMES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "netplugin/flow/flow_report.h"
#include "netplugin/flow/types.h"
#include "netplugin/link/endpoint.h"
#include "netplugin/link/packet.h"

namespace r2cc::net {

// More than the arrivals of kFlowsMax flows with all the messages that they can have in flight.
constexpr uint32_t kFencedPartsMax = 8192;

// The numbers are the wire's.
enum class FrameType : uint16_t {
  kFlowOpen = 1,      // S>R a flow opens
  kFlowOpened = 2,    // R>S its answer
  kGrant = 3,         // R>S a FlowReport that grants
  kAck = 4,           // R>S a FlowReport that does not
  kFence = 5,         // S>R a link must end
  kFenced = 6,        // R>S it has ended, with what has arrived
  kFencedAck = 7,     // S>R its confirmation
  kProved = 8,        // R>S the result of the data check
  kPing = 9,          // S>R an acceptor sends some, too
  kPong = 10,         // R>S the answer
  kFlowEnd = 11,      // S>R the sender closed the flow
  kFlowEnded = 12,    // R>S its confirmation
  kBye = 13,          // R>S the receiver closed the flow
  kByeAck = 14,       // S>R its confirmation
  kRailUp = 15,       // R>S a rail should be tried
  kWant = 16,         // S>R a message waits for its grant
  kRegion = 17,       // R>S memory, and the keys to it
  kRegionKnown = 18,  // S>R its confirmation
  kLinkOffer = 19,    // S>R a link without a greeting of its own
  kLinkAnswer = 20,   // R>S its answer
};

// The payload of a kLinkOffer: the initiator's rail, the acceptor's, and the transport of the link.
struct OfferedRails {
  uint16_t local = 0;
  uint16_t remote = 0;
  TransportKind transport = TransportKind::kTcp;
};
constexpr uint64_t NumberOf(const OfferedRails& rails) {
  return rails.local | uint64_t{rails.remote} << 16 | uint64_t{static_cast<uint8_t>(rails.transport)} << 32;
}
// False: no offer has such a number.
constexpr bool RailsOf(uint64_t number, OfferedRails* rails) {
  *rails = {static_cast<uint16_t>(number), static_cast<uint16_t>(number >> 16), static_cast<TransportKind>(number >> 32 & 0xff)};
  return number >> 32 < uint64_t{kTransportKinds};
}

// Why a kFlowOpened is not ok: another open flow has the same slot (see RecvSession::Options::flow_slots).
constexpr uint32_t kSlotTaken = 1;

namespace frames {

// S>R, R>S
struct Ping {
  static constexpr FrameType type() { return FrameType::kPing; }
  uint64_t number = 0;
};
// R>S, S>R: with the number of the ping.
struct Pong {
  static constexpr FrameType type() { return FrameType::kPong; }
  uint64_t number = 0;
};
// S>R
struct FlowOpen {
  static constexpr FrameType type() { return FrameType::kFlowOpen; }
  FlowId flow = 0;
  uint64_t listen_id = 0;
  uint32_t rail = 0;  // the initiator's; the flow's home
};
// R>S
struct FlowOpened {
  static constexpr FrameType type() { return FrameType::kFlowOpened; }
  FlowId flow = 0;
  bool ok = false;
  uint32_t cause = 0;           // not ok: kSlotTaken, or no listener has that number
  uint64_t eager_messages = 0;  // ok: how many of them the acceptor stages
};
// S>R: end all incarnations of the link up to this one.
struct Fence {
  static constexpr FrameType type() { return FrameType::kFence; }
  LinkId link = 0;
  Incarnation incarnation = 0;
  uint32_t cause = 0;  // a plan::EvidenceCause
};
// R>S: the link has ended, and these are the arrivals of all flows.
struct Fenced {
  static constexpr FrameType type() { return FrameType::kFenced; }
  LinkId link = 0;
  Incarnation incarnation = 0;
  uint32_t cause = 0;
  uint64_t answer = 0;  // the answer that has this part
  uint32_t part = 0;    // counted from 0, below `parts`
  uint32_t parts = 1;
  std::vector<FlowArrivals> arrivals;
};
// S>R
struct FencedAck {
  static constexpr FrameType type() { return FrameType::kFencedAck; }
  LinkId link = 0;
  Incarnation incarnation = 0;
};
// R>S: the result of the data check.
struct Proved {
  static constexpr FrameType type() { return FrameType::kProved; }
  LinkId link = 0;
  Incarnation incarnation = 0;
  bool ok = false;
};
// S>R: the sender closed the flow.
struct FlowEnd {
  static constexpr FrameType type() { return FrameType::kFlowEnd; }
  FlowId flow = 0;
};
// R>S
struct FlowEnded {
  static constexpr FrameType type() { return FrameType::kFlowEnded; }
  FlowId flow = 0;
};
// R>S: the receiver closed it.
struct Bye {
  static constexpr FrameType type() { return FrameType::kBye; }
  FlowId flow = 0;
  MessageId placed_through = 0;
};
// S>R
struct ByeAck {
  static constexpr FrameType type() { return FrameType::kByeAck; }
  FlowId flow = 0;
};
// R>S: the acceptor's rail is back and should be tried.
struct RailUp {
  static constexpr FrameType type() { return FrameType::kRailUp; }
  uint64_t rail = 0;
};
// S>R: the message waits for its grant.
struct Want {
  static constexpr FrameType type() { return FrameType::kWant; }
  FlowId flow = 0;
  MessageId message = 0;
};
// R>S: the region's newest generation. Never null.
struct RegionAnnounced {
  static constexpr FrameType type() { return FrameType::kRegion; }
  std::shared_ptr<const Region> region;
};
// S>R
struct RegionKnown {
  static constexpr FrameType type() { return FrameType::kRegionKnown; }
  uint64_t region = 0;
  uint32_t generation = 0;
};
// S>R: a link without a greeting of its own.
struct LinkOffer {
  static constexpr FrameType type() { return FrameType::kLinkOffer; }
  LinkId link = 0;
  Incarnation incarnation = 0;
  uint64_t rails = 0;  // NumberOf(OfferedRails); a peer may send any number
  Endpoint endpoint;
};
// R>S
struct LinkAnswer {
  static constexpr FrameType type() { return FrameType::kLinkAnswer; }
  LinkId link = 0;
  Incarnation incarnation = 0;
  bool ok = false;
  Endpoint endpoint;
};

}  // namespace frames

// Grants and acknowledgements travel as the FlowReport that the receiver's flows make.
using Frame =
    std::variant<frames::Ping, frames::Pong, FlowReport, frames::FlowOpen, frames::FlowOpened, frames::Fence, frames::Fenced,
                 frames::FencedAck, frames::Proved, frames::FlowEnd, frames::FlowEnded, frames::Bye, frames::ByeAck, frames::RailUp,
                 frames::Want, frames::RegionAnnounced, frames::RegionKnown, frames::LinkOffer, frames::LinkAnswer>;

FrameType TypeOf(const Frame& frame);

// One complete packet, ready to be written.
Bytes Encode(const Frame& frame, uint32_t tag);
// One complete packet as PacketLength() found it. False if anything about it is wrong.
bool Decode(std::span<const uint8_t> packet, uint32_t tag, Frame* frame);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FRAMES_H_
