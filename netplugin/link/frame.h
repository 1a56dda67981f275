// What travels between two plugin processes. All numbers are little-endian; nothing that arrives is trusted.
//
// Every connection begins with one Hello from the initiator (the sender's process) and one HelloReply. A control channel then carries
// control frames both ways: {magic, type, body bytes, checksum of the body} and the body. A bulk socket carries, initiator to acceptor
// only, chunks: a BulkHeader and the chunk's bytes. Checksums after the greeting are CRC-32C exclusive-or the session's tag, which only
// the two ends know: a packet that a stranger slips into a connection is garbage.
//
// Text goes into logs, records and tables: what is not printable ASCII is a '?' when it has been decoded. No daemon gives names with
// anything else, so such a name means no NIC of the page; a node that has one is not refused for it.
#ifndef R2CC_NETPLUGIN_LINK_FRAME_H_
#define R2CC_NETPLUGIN_LINK_FRAME_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "netplugin/flow/types.h"
#include "netplugin/link/packet.h"

namespace r2cc::net {

constexpr uint32_t kWireVersionLeast = 5;  // release 0.2.0 speaks 4 to 5
constexpr uint32_t kWireVersion = 5;       // newest
// From here on each end says its release, so that a job over nodes of two releases can tell which has which. An older greeting is read
// without it, so that the refusal names both versions.
constexpr uint32_t kWireVersionWithRelease = 5;
// More than the arrivals of kFlowsMax flows with all the messages that they may have under way.
constexpr uint32_t kFencedPartsMax = 8192;
constexpr uint32_t kWireRailsMax = 32;

enum class ConnectionKind : uint8_t { kOob = 0, kLink = 1 };

// What carries a link.
enum class TransportKind : uint8_t { kTcp = 0, kVerbs = 1 };
constexpr int kTransportKinds = 2;
// Where a transport is found on a rail, or one path of a link: at most 255 bytes. Only that transport reads it.
using Endpoint = std::vector<uint8_t>;

// One transport that a rail has. The bytes are empty while the rail is there and cannot be reached.
struct RailEndpoint {
  TransportKind transport = TransportKind::kTcp;
  Endpoint bytes;

  friend bool operator==(const RailEndpoint&, const RailEndpoint&) = default;
};

// What a process says of memory in which buffers are: how the devices of its peers reach it. Each change of the keys is another
// generation, 1, 2, 3, ...; the rest stays.
struct Region {
  RegionId id = 0;
  uint32_t generation = 0;
  uint64_t base = 0;  // its first byte's address for whoever has a key
  uint64_t bytes = 0;
  // By the rail of that process: the transports with which it can be reached there, each with its key; an empty key, where the receiver
  // places. No rails: it is not registered any more.
  std::vector<std::vector<RailEndpoint>> keys;

  friend bool operator==(const Region&, const Region&) = default;
};

// What a process says of one of its rails.
struct RailInfo {
  std::string nic;  // the NIC's name on its node, as the node's daemon calls it
  bool up = false;
  std::vector<RailEndpoint> endpoints;
};

struct Hello {
  uint32_t wire_least = kWireVersionLeast;
  uint32_t wire_newest = kWireVersion;
  ConnectionKind kind = ConnectionKind::kOob;
  uint64_t nonce = 0;           // from the listener's handle: a stranger does not know it
  uint64_t target_process = 0;  // whom the initiator means to reach
  uint64_t session = 0;         // random, chosen by the initiator
  // kLink:
  LinkId link = 0;
  uint16_t local_rail = 0;   // the initiator's
  uint16_t remote_rail = 0;  // the acceptor's
  Incarnation incarnation = 0;
  TransportKind transport = TransportKind::kTcp;
  Endpoint endpoint;  // which path of the link this is
  // kOob:
  uint64_t process = 0;
  std::string node;
  std::string oob_address;  // where the initiator itself listens
  uint16_t oob_port = 0;
  uint16_t links = 0;  // links of the session
  std::vector<RailInfo> rails;
  std::string release;  // the initiator's; empty on a link, and of a peer that is refused for its version
};

struct HelloReply {
  uint32_t wire_version = kWireVersion;
  bool accepted = false;
  std::string reason;  // one line if not
  // kOob:
  std::string node;
  std::vector<RailInfo> rails;
  std::string release;  // the acceptor's; empty if it refuses
};

// The numbers are the wire's.
enum class FrameType : uint16_t {
  kFlowOpen = 1,      // S>R flow, number = listen id, cause = the rail at which the flow is at home
  kFlowOpened = 2,    // R>S flow, ok, number = eager messages that it stages; not ok: cause (kSlotTaken, or nobody listens)
  kGrant = 3,         // R>S flow, message = placed through, numbers = capacities of all buffers posted from there on, places
  kAck = 4,           // R>S flow, message = placed through
  kFence = 5,         // S>R link, incarnation, cause
  kFenced = 6,        // R>S link, incarnation, cause, arrivals of all flows; part of parts, number = the answer that they are parts of
  kFencedAck = 7,     // S>R link, incarnation
  kProved = 8,        // R>S link, incarnation, ok
  kPing = 9,          // S>R number
  kPong = 10,         // R>S number
  kFlowEnd = 11,      // S>R flow: the sender closed it
  kFlowEnded = 12,    // R>S flow
  kBye = 13,          // R>S flow, message = placed through: the receiver closed it
  kByeAck = 14,       // S>R flow
  kRailUp = 15,       // R>S number = rail: the acceptor's rail is back, worth a try
  kWant = 16,         // S>R flow, message: it waits for its grant
  kRegion = 17,       // R>S region
  kRegionKnown = 18,  // S>R number = region, incarnation = generation
  kLinkOffer = 19,    // S>R link, incarnation, number = its rails (OfferedRails), endpoint: a link without a greeting of its own
  kLinkAnswer = 20,   // R>S link, incarnation, ok, endpoint
};

struct Frame {
  FrameType type = FrameType::kPing;
  FlowId flow = 0;
  LinkId link = 0;
  Incarnation incarnation = 0;
  uint32_t cause = 0;
  bool ok = false;
  uint64_t number = 0;
  MessageId message = 0;
  uint32_t part = 0;  // kFenced: counted from 0, below `parts`
  uint32_t parts = 1;
  std::vector<uint64_t> numbers;
  std::vector<Place> places;  // kGrant: as many as `numbers`, or none
  std::vector<FlowArrivals> arrivals;
  std::shared_ptr<const Region> region;  // kRegion; else null
  Endpoint endpoint;                     // kLinkOffer, kLinkAnswer; else empty
};

// Of a kFlowOpened that is not ok: another open flow has the same slot (see RecvSession::Options::flow_slots).
constexpr uint32_t kSlotTaken = 1;

constexpr bool HasEndpoint(FrameType type) { return type == FrameType::kLinkOffer || type == FrameType::kLinkAnswer; }

// In `number` of a kLinkOffer: the initiator's rail, the acceptor's, and what carries the link.
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

// Whole packets, ready to be written.
Bytes Encode(const Hello& hello);
Bytes Encode(const HelloReply& reply);
Bytes Encode(const Frame& frame, uint32_t tag);

// One whole packet as PacketLength() found it. False if anything about it is wrong.
bool Decode(std::span<const uint8_t> packet, Hello* hello);
bool Decode(std::span<const uint8_t> packet, HelloReply* reply);
bool Decode(std::span<const uint8_t> packet, uint32_t tag, Frame* frame);

// ---- bulk ----

enum class BulkType : uint8_t { kChunk = 1, kProof = 2 };

constexpr size_t kBulkHeaderBytes = 48;
constexpr uint32_t kBulkBytesMax = 1u << 30;  // in one chunk

struct BulkHeader {
  BulkType type = BulkType::kChunk;
  Chunk chunk;               // `data` does not travel
  bool checksummed = false;  // payload_crc is set
  uint32_t payload_crc = 0;
};

void Encode(const BulkHeader& header, uint32_t tag, uint8_t (&out)[kBulkHeaderBytes]);
// False if magic, checksum, type or lengths are wrong.
bool Decode(const uint8_t (&bytes)[kBulkHeaderBytes], uint32_t tag, BulkHeader* header);

// The newest version that both ends speak; 0 if there is none.
uint32_t NegotiateVersion(uint32_t their_least, uint32_t their_newest);
// One that an initiator of this release may be answered with.
constexpr bool IsSpoken(uint32_t wire_version) { return wire_version >= kWireVersionLeast && wire_version <= kWireVersion; }

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FRAME_H_
