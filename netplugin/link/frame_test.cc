#include "netplugin/link/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/hash.h"

namespace r2cc::net {
namespace {

frames::Fenced FullFenced() {
  return {.link = 3,
          .incarnation = 9,
          .cause = 2,
          .answer = 0x1122334455667788,
          .part = 1,
          .parts = 3,
          .arrivals = {{7, 41, {{42, 4096, {true, false, true}}, {44, 4096, std::vector<bool>(17, true)}}}, {8, 0, {}}}};
}

FlowReport FullGrant() { return {.flow = 7, .placed_through = 3, .grants = true, .capacities = {100, 200}, .places = {{5, 2, 4096}, {}}}; }

frames::RegionAnnounced FullRegion() {
  const std::vector<RailEndpoint> keys = {{TransportKind::kTcp, {}}, {TransportKind::kVerbs, {1, 2, 0, 255}}};
  return {std::make_shared<Region>(Region{5, 2, 0x10000, 4096, {keys, {}, {{TransportKind::kVerbs, {7}}}}})};
}

frames::LinkOffer FullOffer() {
  return {.link = 4, .incarnation = 7, .rails = NumberOf({5, 6, TransportKind::kVerbs}), .endpoint = {1, 2, 0, 255}};
}

constexpr uint32_t kTag = 0x12345678;

TEST(Offer, ComesBackWithItsRails) {
  Frame got;
  ASSERT_TRUE(Decode(Encode(FullOffer(), kTag), kTag, &got));
  EXPECT_EQ(std::get<frames::LinkOffer>(got).endpoint, FullOffer().endpoint);
  OfferedRails rails;
  ASSERT_TRUE(RailsOf(std::get<frames::LinkOffer>(got).rails, &rails));
  EXPECT_EQ(rails.local, 5);
  EXPECT_EQ(rails.remote, 6);
  EXPECT_EQ(rails.transport, TransportKind::kVerbs);
  EXPECT_FALSE(RailsOf(uint64_t{kTransportKinds} << 32, &rails));
}

Hello FullHello() {
  Hello hello;
  hello.kind = ConnectionKind::kLink;
  hello.nonce = 1;
  hello.target_process = 2;
  hello.session = 3;
  hello.link = 4;
  hello.local_rail = 5;
  hello.remote_rail = 6;
  hello.incarnation = 7;
  hello.transport = TransportKind::kVerbs;
  hello.endpoint = {1, 2, 0, 255};
  hello.process = 10;
  hello.node = "n0";
  hello.oob_address = "10.0.0.1";
  hello.oob_port = 1234;
  hello.links = 8;
  hello.release = "0.9";
  hello.rails = {{"rail0", true, {{TransportKind::kTcp, {10, 1, 0, 1}}, {TransportKind::kVerbs, {7}}}}, {"rail1", false, {{}}}};
  return hello;
}

TEST(Wire, FramesComeBackAsTheyWere) {
  const Bytes bytes = Encode(FullFenced(), kTag);
  EXPECT_EQ(PacketLength(bytes), bytes.size());
  Frame out;
  ASSERT_TRUE(Decode(bytes, kTag, &out));
  EXPECT_EQ(Encode(out, kTag), bytes);
  const auto& fenced = std::get<frames::Fenced>(out);
  EXPECT_EQ(fenced.answer, FullFenced().answer);
  ASSERT_EQ(fenced.arrivals.size(), 2u);
  EXPECT_EQ(fenced.arrivals[0].partial[0].placed, (std::vector<bool>{true, false, true}));
}

TEST(Wire, GrantsAndRegionsComeBackAsTheyWere) {
  Frame out;
  ASSERT_TRUE(Decode(Encode(FullGrant(), kTag), kTag, &out));
  EXPECT_EQ(TypeOf(out), FrameType::kGrant);
  const auto& grant = std::get<FlowReport>(out);
  EXPECT_EQ(grant.capacities, FullGrant().capacities);
  ASSERT_EQ(grant.places.size(), 2u);
  EXPECT_EQ(grant.places[0].region, 5u);
  EXPECT_EQ(grant.places[0].generation, 2u);
  EXPECT_EQ(grant.places[0].offset, 4096u);
  EXPECT_EQ(grant.places[1].region, 0u);
  // What was decoded before is not left behind.
  ASSERT_TRUE(Decode(Encode(FlowReport{.flow = 7, .placed_through = 4}, kTag), kTag, &out));
  EXPECT_EQ(TypeOf(out), FrameType::kAck);
  EXPECT_TRUE(std::get<FlowReport>(out).places.empty());
  ASSERT_TRUE(Decode(Encode(FullRegion(), kTag), kTag, &out));
  EXPECT_EQ(*std::get<frames::RegionAnnounced>(out).region, *FullRegion().region);
}

// The numbers of a body that is all ones, by type: what the type does not use is neither kept nor sent on.
TEST(Wire, UnusedFieldsOfATypeAreNotRead) {
  Bytes ones = Encode(frames::Ping{}, kTag);
  for (size_t at = kPacketHeaderBytes; at < ones.size() - 2 * sizeof(uint32_t); ++at) ones[at] = 1;
  const uint32_t crc = Crc32c(ones.data() + kPacketHeaderBytes, ones.size() - kPacketHeaderBytes) ^ kTag;
  std::memcpy(ones.data() + 12, &crc, sizeof(crc));
  Frame out;
  ASSERT_TRUE(Decode(ones, kTag, &out));
  EXPECT_EQ(std::get<frames::Ping>(out).number, 0x0101010101010101u);
  EXPECT_EQ(Encode(out, kTag), Encode(frames::Ping{0x0101010101010101}, kTag));
  for (const uint16_t type : {uint16_t{0}, static_cast<uint16_t>(static_cast<uint16_t>(FrameType::kLinkAnswer) + 1), uint16_t{0x100}}) {
    std::memcpy(ones.data() + 4, &type, sizeof(type));
    EXPECT_FALSE(Decode(ones, kTag, &out)) << "no frame has this type: " << type;
  }
}

TEST(Wire, APlaceOrARegionThatCannotBeIsRefused) {
  Frame out;
  const auto refused = [&](const Frame& frame) { return !Decode(Encode(frame, kTag), kTag, &out); };
  FlowReport grant = FullGrant();
  grant.places.pop_back();
  EXPECT_TRUE(refused(grant)) << "one place for two buffers";
  grant.places.clear();
  EXPECT_FALSE(refused(grant));
  for (const BufferPlace& place : {BufferPlace{0, 1, 0}, BufferPlace{0, 0, 8}, BufferPlace{5, 0, 8}}) {
    grant.places = {place, {}};
    EXPECT_TRUE(refused(grant));
  }
  const auto refuses = [&](auto change) {
    Region region = *FullRegion().region;
    change(&region);
    return refused(frames::RegionAnnounced{std::make_shared<Region>(region)});
  };
  EXPECT_FALSE(refuses([](Region* region) { region->keys.clear(); })) << "gone";
  EXPECT_TRUE(refuses([](Region* region) { region->id = 0; }));
  EXPECT_TRUE(refuses([](Region* region) { region->generation = 0; }));
  EXPECT_TRUE(refuses([](Region* region) { region->bytes = UINT64_MAX - region->base + 1; }));
  EXPECT_TRUE(refuses([](Region* region) { region->keys.resize(kWireRailsMax + 1); }));
  EXPECT_TRUE(refuses([](Region* region) { region->keys[1] = {{}, {}}; })) << "two keys of one transport";
  EXPECT_TRUE(refuses([](Region* region) { region->keys[1] = {{static_cast<TransportKind>(kTransportKinds), {}}}; }));
}

TEST(Wire, GreetingsComeBackAsTheyWere) {
  Hello hello;
  ASSERT_TRUE(Decode(Encode(FullHello()), &hello));
  EXPECT_EQ(Encode(hello), Encode(FullHello()));
  HelloReply reply{.accepted = true, .reason = "why", .node = "n1", .rails = FullHello().rails, .release = "0.9"};
  HelloReply out;
  ASSERT_TRUE(Decode(Encode(reply), &out));
  EXPECT_EQ(Encode(out), Encode(reply));
}

// What a peer calls itself goes into logs and records.
TEST(Wire, TextComesAsOnePrintableLine) {
  const std::string hostile = "x\n\x1b[31my\x7f\xc2\x9b" + std::string(1, '\0') + "z", clean = "x??[31my????z";
  Hello hello = FullHello();
  hello.node = hello.oob_address = hello.rails[0].nic = hostile;
  hello.endpoint.assign(hostile.begin(), hostile.end());
  Hello out;
  ASSERT_TRUE(Decode(Encode(hello), &out));
  EXPECT_EQ(out.node, clean);
  EXPECT_EQ(out.oob_address, clean);
  EXPECT_EQ(out.rails[0].nic, clean);
  EXPECT_EQ(out.endpoint, hello.endpoint) << "what only its transport reads stays as it is";
  EXPECT_EQ(out.rails[1].nic, "rail1");
  HelloReply reply;
  ASSERT_TRUE(Decode(Encode(HelloReply{.reason = hostile, .node = hostile, .rails = hello.rails}), &reply));
  EXPECT_EQ(reply.reason, clean);
  EXPECT_EQ(reply.node, clean);
  EXPECT_EQ(reply.rails[0].nic, clean);
}

TEST(Wire, OnePacketIsNotTakenForAnother) {
  Hello hello;
  Frame frame;
  HelloReply reply;
  EXPECT_FALSE(Decode(Encode(FullFenced(), kTag), &hello));
  EXPECT_FALSE(Decode(Encode(FullHello()), kTag, &frame));
  EXPECT_FALSE(Decode(Encode(FullHello()), &reply));
}

TEST(Wire, ForeignFirstBytesAreEnoughForARefusal) {
  const std::string http = "GET / HTTP/1.1\r\n";
  for (size_t n = 1; n <= http.size(); ++n) EXPECT_GT(PacketLength({reinterpret_cast<const uint8_t*>(http.data()), n}), kPacketBytesMax);
  EXPECT_EQ(PacketLength({}), 0u);
}

TEST(Wire, ALengthBeyondTheLimitIsRefused) {
  Bytes bytes = Encode(FullFenced(), kTag);
  const uint32_t length = kControlBodyBytesMax + 1;
  std::memcpy(bytes.data() + 8, &length, sizeof(length));
  EXPECT_GT(PacketLength(bytes), kPacketBytesMax);
}

TEST(Wire, EverySingleFlippedBitIsNoticed) {
  for (const Bytes& good : {Encode(FullFenced(), kTag), Encode(FullGrant(), kTag), Encode(FullRegion(), kTag), Encode(FullHello())}) {
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      Bytes bad = good;
      bad[bit / 8] = static_cast<uint8_t>(bad[bit / 8] ^ 1u << (bit % 8));
      Frame frame;
      Hello hello;
      const bool header_type_or_reserved = bit / 8 >= 4 && bit / 8 < 8;
      if (header_type_or_reserved) continue;  // another type, or a field that is not read: not an error of transport
      EXPECT_FALSE(PacketLength(bad) == bad.size() && (Decode(bad, kTag, &frame) || Decode(bad, &hello))) << "bit " << bit;
    }
  }
}

// The packet's body as it is now, under a right length and checksum.
Bytes MadeSound(Bytes packet, uint32_t tag) {
  const auto body = static_cast<uint32_t>(packet.size() - kPacketHeaderBytes);
  const uint32_t crc = Crc32c(packet.data() + kPacketHeaderBytes, body) ^ tag;
  std::memcpy(packet.data() + 8, &body, sizeof(body));
  std::memcpy(packet.data() + 12, &crc, sizeof(crc));
  return packet;
}

// What is accepted says the same when it is encoded again. True if it is accepted.
template <typename Message, typename Decoder, typename Encoder>
bool AcceptedAndKept(const Bytes& packet, Decoder decode, Encoder encode) {
  Message message, twice;
  if (!decode(packet, &message)) return false;
  const Bytes again = encode(message);
  EXPECT_TRUE(decode(again, &twice));
  EXPECT_EQ(encode(twice), again);
  return true;
}

// With a right checksum, any body at all: the decoders must survive it.
TEST(Wire, DecodersSurviveAnyBody) {
  std::mt19937_64 random(1);
  const auto decode_frame = [](const Bytes& packet, Frame* frame) { return Decode(packet, kTag, frame); };
  const auto encode_frame = [](const Frame& frame) { return Encode(frame, kTag); };
  const auto decode = [](const Bytes& packet, auto* message) { return Decode(packet, message); };
  const auto encode = [](const auto& message) { return Encode(message); };
  const struct {
    Bytes packet;
    uint32_t tag;
  } seeds[] = {{Encode(FullFenced(), kTag), kTag},
               {Encode(FullGrant(), kTag), kTag},
               {Encode(FullRegion(), kTag), kTag},
               {Encode(FullHello()), 0},
               {Encode(HelloReply{.node = "x", .rails = FullHello().rails}), 0}};
  constexpr size_t kSeeds = std::size(seeds);
  int accepted[kSeeds] = {}, refused[kSeeds] = {};
  for (int i = 0; i < 150'000; ++i) {
    const auto which = static_cast<size_t>(random() % kSeeds);
    Bytes bytes = seeds[which].packet;
    const size_t body = bytes.size() - kPacketHeaderBytes;
    for (uint64_t flips = 1 + random() % 8; flips > 0; --flips)
      bytes[kPacketHeaderBytes + random() % body] = static_cast<uint8_t>(random());
    if (random() % 3 == 0) bytes.resize(kPacketHeaderBytes + random() % (body + 1));
    bytes = MadeSound(std::move(bytes), seeds[which].tag);
    const bool sound = which < 3    ? AcceptedAndKept<Frame>(bytes, decode_frame, encode_frame)
                       : which == 3 ? AcceptedAndKept<Hello>(bytes, decode, encode)
                                    : AcceptedAndKept<HelloReply>(bytes, decode, encode);
    ++(sound ? accepted : refused)[which];
  }
  // Neither is rare: the checksum alone decides nothing here.
  for (size_t which = 0; which < kSeeds; ++which) {
    EXPECT_GT(accepted[which], 1000) << which;
    EXPECT_GT(refused[which], 1000) << which;
  }
}

TEST(Wire, AnyBulkHeaderIsRefusedOrSound) {
  std::mt19937_64 random(2);
  BulkHeader like{.chunk = {3, 1, 1u << 20, 4096, 9, nullptr, 4096}};
  int accepted = 0, refused = 0;
  for (int i = 0; i < 100'000; ++i) {
    uint8_t header[kBulkHeaderBytes];
    Encode(like, kTag, header);
    for (uint64_t flips = 1 + random() % 8; flips > 0; --flips) header[random() % 44] = static_cast<uint8_t>(random());
    const uint32_t crc = Crc32c(header, 44) ^ kTag;
    std::memcpy(header + 44, &crc, sizeof(crc));
    BulkHeader out;
    if (!Decode(header, kTag, &out)) {
      ++refused;
      continue;
    }
    ++accepted;
    EXPECT_LE(out.chunk.bytes, kBulkBytesMax);
    EXPECT_LE(out.chunk.message_bytes, kMessageBytesMax);
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(Wire, BulkHeadersComeBackAndAreChecked) {
  BulkHeader header{.chunk = {3, 1ull << 33, 1u << 20, 4096, 9, nullptr, 4096}, .checksummed = true, .payload_crc = 77};
  uint8_t bytes[kBulkHeaderBytes];
  Encode(header, kTag, bytes);
  BulkHeader out;
  ASSERT_TRUE(Decode(bytes, kTag, &out));
  EXPECT_EQ(out.chunk.message, header.chunk.message);
  EXPECT_EQ(out.chunk.index, 9u);
  EXPECT_EQ(out.payload_crc, 77u);
  for (size_t i = 0; i < kBulkHeaderBytes * 8; ++i) {
    bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] ^ 1u << (i % 8));
    EXPECT_FALSE(Decode(bytes, kTag, &out)) << "bit " << i;
    bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] ^ 1u << (i % 8));
  }
}

TEST(Wire, AFrameWithAnotherTagIsGarbage) {
  const uint32_t ours = SessionTag(1, 2);
  Frame frame;
  BulkHeader header{.chunk = {3, 0, 4096, 4096, 0, nullptr, 4096, true}}, out;
  uint8_t bytes[kBulkHeaderBytes];
  for (const uint32_t theirs : {0u, SessionTag(1, 3), SessionTag(2, 2)}) {
    EXPECT_FALSE(Decode(Encode(FullFenced(), theirs), ours, &frame));
    Encode(header, theirs, bytes);
    EXPECT_FALSE(Decode(bytes, ours, &out));
  }
  Encode(header, ours, bytes);
  ASSERT_TRUE(Decode(bytes, ours, &out));
  EXPECT_TRUE(out.chunk.eager);
}

TEST(Wire, VersionsNegotiateDownOrRefuse) {
  EXPECT_EQ(NegotiateVersion(kWireVersion, kWireVersion), kWireVersion);
  EXPECT_EQ(NegotiateVersion(1, kWireVersionLeast - 1), 0u);
  EXPECT_EQ(NegotiateVersion(1, 99), kWireVersion);
  EXPECT_EQ(NegotiateVersion(kWireVersion + 1, 99), 0u);
  EXPECT_EQ(NegotiateVersion(0, 0), 0u);
}

}  // namespace
}  // namespace r2cc::net
