// Encodes and decodes the greetings and bulk headers between two plugin processes. All numbers are little-endian; nothing that arrives is
// trusted.
//
// Every connection begins with one Hello from the initiator (the sender's process) and one HelloReply. A control channel then carries
// control frames both ways: {magic, type, body bytes, checksum of the body} and the body. A bulk socket carries chunks from initiator to
// acceptor only: a BulkHeader and the chunk's bytes. Checksums after the greeting are CRC-32C exclusive-or the session's tag, which only
// the two ends know: a packet that an outsider injects into a connection fails the check.
//
// packet.h states how text is decoded.
#ifndef R2CC_NETPLUGIN_LINK_FRAME_H_
#define R2CC_NETPLUGIN_LINK_FRAME_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "netplugin/flow/types.h"
#include "netplugin/link/endpoint.h"
#include "netplugin/link/frames.h"
#include "netplugin/link/packet.h"

namespace r2cc::net {

constexpr uint32_t kWireVersionLeast = 5;  // release 0.2.0 speaks 4 to 5
constexpr uint32_t kWireVersion = 5;       // newest
// From here on each end sends its release, so that the log can name the nodes of each release in a mixed job. An older greeting is read
// without it, so that the refusal names both versions.
constexpr uint32_t kWireVersionWithRelease = 5;

enum class ConnectionKind : uint8_t { kOob = 0, kLink = 1 };
constexpr bool IsKnown(ConnectionKind kind) { return kind <= ConnectionKind::kLink; }

struct Hello {
  uint32_t wire_least = kWireVersionLeast;
  uint32_t wire_newest = kWireVersion;
  ConnectionKind kind = ConnectionKind::kOob;
  uint64_t nonce = 0;           // from the listener's handle: an outsider does not know it
  uint64_t target_process = 0;  // the process that the initiator wants to reach
  uint64_t session = 0;         // random, chosen by the initiator
  // kLink:
  LinkId link = 0;
  uint16_t local_rail = 0;   // the initiator's
  uint16_t remote_rail = 0;  // the acceptor's
  Incarnation incarnation = 0;
  TransportKind transport = TransportKind::kTcp;
  Endpoint endpoint;  // the path of the link that this connection is
  // kOob:
  uint64_t process = 0;
  std::string node;
  std::string oob_address;  // where the initiator itself listens
  uint16_t oob_port = 0;
  uint16_t links = 0;  // links of the session
  std::vector<RailInfo> rails;
  std::string release;  // the initiator's; empty on a link, and for a peer that is refused for its version
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

// Complete packets, ready to be written.
Bytes Encode(const Hello& hello);
Bytes Encode(const HelloReply& reply);

// One complete packet as PacketLength() found it. False if anything about it is wrong.
bool Decode(std::span<const uint8_t> packet, Hello* hello);
bool Decode(std::span<const uint8_t> packet, HelloReply* reply);

// ---- bulk ----

enum class BulkType : uint8_t { kChunk = 1, kProof = 2 };

constexpr size_t kBulkHeaderBytes = 48;
constexpr uint32_t kBulkBytesMax = 1u << 30;  // in one chunk

struct BulkHeader {
  BulkType type = BulkType::kChunk;
  Chunk chunk;               // `data` is not sent
  bool checksummed = false;  // payload_crc is set
  uint32_t payload_crc = 0;
};

void Encode(const BulkHeader& header, uint32_t tag, uint8_t (&out)[kBulkHeaderBytes]);
// False if magic, checksum, type or lengths are wrong.
bool Decode(const uint8_t (&bytes)[kBulkHeaderBytes], uint32_t tag, BulkHeader* header);

// The newest version that both ends support; 0 if there is none.
uint32_t NegotiateVersion(uint32_t their_least, uint32_t their_newest);
// A version that an initiator of this release accepts in an answer.
constexpr bool IsSpoken(uint32_t wire_version) { return wire_version >= kWireVersionLeast && wire_version <= kWireVersion; }

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FRAME_H_
