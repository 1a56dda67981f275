// This release reads what 0.2.0 put on the wire, into shared memory and into files. A program of 0.2.0 finds its own bytes in what this
// release sends to it, wherever it looks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/version_range.h"
#include "daemon/core/convert.h"
#include "daemon/peers/peer_texts.h"
#include "netplugin/attach/attach_packets.h"
#include "plan/page/page.h"
#include "plan/page/page_layout.h"
#include "plan/page/ring.h"
#include "plan/page/ring_layout.h"
#include "tests/upgrade/golden_files.h"
#include "tests/upgrade/golden_values.h"

namespace r2cc::golden {
namespace {

constexpr char kOurRelease[] = "0.3.0";

// ---- between plugins ----

TEST(Wire, GreetingsOfTheOldReleaseAreReadAndWrittenAsThen) {
  for (const auto& [name, value] : {std::pair("hello_oob", OobHello()), std::pair("hello_link", LinkHello())}) {
    EXPECT_EQ(Text(net::Encode(value)), Golden(name)) << name;
    net::Hello hello;
    ASSERT_TRUE(net::Decode(GoldenBytes(name), &hello)) << name;
    EXPECT_EQ(Text(net::Encode(hello)), Golden(name)) << name;
    EXPECT_EQ(hello.release, value.release) << name;
    EXPECT_EQ(net::NegotiateVersion(hello.wire_least, hello.wire_newest), kOldWire) << name;
  }
}

// A field that is new in this release is set here, and the bytes stay: what the old release does not know is not sent to it.
TEST(Wire, RepliesOfTheOldReleaseAreReadAndWrittenAsThen) {
  for (const auto& [name, value] : {std::pair("hello_reply", Reply()), std::pair("hello_refusal", Refusal())}) {
    EXPECT_EQ(Text(net::Encode(value)), Golden(name)) << name;
    net::HelloReply reply;
    ASSERT_TRUE(net::Decode(GoldenBytes(name), &reply)) << name;
    EXPECT_EQ(Text(net::Encode(reply)), Golden(name)) << name;
    EXPECT_EQ(reply.release, value.release) << name;
    EXPECT_TRUE(net::IsSpoken(reply.wire_version)) << name;
  }
}

TEST(Wire, ARefusalForTheVersionIsReadByWhoKnowsNoneOfIt) {
  net::HelloReply ours = VersionRefusal();
  ours.release = kOurRelease;
  EXPECT_EQ(Text(net::Encode(ours)), Golden("hello_version_refusal"));
  net::HelloReply reply;
  ASSERT_TRUE(net::Decode(GoldenBytes("hello_version_refusal"), &reply));
  EXPECT_FALSE(reply.accepted);
  EXPECT_EQ(reply.reason, VersionRefusal().reason);
}

// The old release reads its own fields and ignores what follows them.
TEST(Wire, AGreetingOfThisReleaseBeginsAsTheOldOneReadsIt) {
  net::Hello ours = OobHello();
  ours.wire_least = net::kWireVersionLeast;
  ours.wire_newest = net::kWireVersion;
  const std::string encoded = Text(net::Encode(ours)).substr(net::kPacketHeaderBytes);
  const std::string old = Golden("hello_oob").substr(net::kPacketHeaderBytes);
  ASSERT_GE(encoded.size(), old.size());
  // The range is first: 4 bytes each.
  EXPECT_TRUE(SameBut(encoded.substr(0, old.size()), old, {{0, 8}}));
  EXPECT_EQ(Negotiated(ours.wire_least, ours.wire_newest, kOldWireLeast, kOldWire), kOldWire);
}

// Where a frame's body has the fields that it begins with, whatever its type.
constexpr size_t kBody = net::kPacketHeaderBytes;
constexpr Field kFlow{kBody, kBody + 4}, kLink{kBody + 4, kBody + 6}, kIncarnation{kBody + 6, kBody + 10}, kCause{kBody + 10, kBody + 14},
    kOk{kBody + 14, kBody + 15}, kNumber{kBody + 15, kBody + 23}, kMessage{kBody + 23, kBody + 31};

// Those that release 0.2.0 fills in its file and reads nowhere, by type. We send zeros there.
std::vector<Field> UnusedFields(net::FrameType type) {
  using net::FrameType;
  switch (type) {
    case FrameType::kFlowOpen: return {kLink, kIncarnation, kOk, kMessage};
    case FrameType::kFlowOpened: return {kLink, kIncarnation, kMessage};
    case FrameType::kGrant:
    case FrameType::kAck:
    case FrameType::kBye:
    case FrameType::kWant: return {kLink, kIncarnation, kCause, kOk, kNumber};
    case FrameType::kFence: return {kFlow, kOk, kNumber, kMessage};
    case FrameType::kFenced: return {kFlow, kOk, kMessage};
    case FrameType::kFencedAck: return {kFlow, kCause, kOk, kNumber, kMessage};
    case FrameType::kProved:
    case FrameType::kLinkAnswer: return {kFlow, kCause, kNumber, kMessage};
    case FrameType::kPing:
    case FrameType::kPong:
    case FrameType::kRailUp: return {kFlow, kLink, kIncarnation, kCause, kOk, kMessage};
    case FrameType::kFlowEnd:
    case FrameType::kFlowEnded:
    case FrameType::kByeAck: return {kLink, kIncarnation, kCause, kOk, kNumber, kMessage};
    case FrameType::kRegion: return {kFlow, kLink, kIncarnation, kCause, kOk, kNumber, kMessage};
    case FrameType::kRegionKnown: return {kFlow, kLink, kCause, kOk, kMessage};
    case FrameType::kLinkOffer: return {kFlow, kCause, kOk, kMessage};
  }
  return {};
}

TEST(Wire, EveryFrameIsTheSameBytes) {
  for (const auto& [name, value] : Frames()) {
    const std::string encoded = Text(net::Encode(value, kTag));
    std::vector<Field> but = UnusedFields(net::TypeOf(value));
    for (const Field& unused : but)
      EXPECT_EQ(encoded.substr(unused.begin, unused.end - unused.begin), std::string(unused.end - unused.begin, '\0')) << name;
    but.push_back({kBody - sizeof(uint32_t), kBody});  // the body's checksum
    EXPECT_TRUE(SameBut(encoded, Golden(name), but)) << name;
    net::Frame frame;
    ASSERT_TRUE(net::Decode(GoldenBytes(name), kTag, &frame)) << name;
    EXPECT_EQ(Text(net::Encode(frame, kTag)), encoded) << name;
  }
}

TEST(Wire, BulkHeadersAreTheSameBytes) {
  for (const auto& [name, value] : {std::pair("bulk", Bulk()), std::pair("bulk_proof", BulkProof())}) {
    uint8_t bytes[net::kBulkHeaderBytes];
    net::Encode(value, kTag, bytes);
    EXPECT_EQ(TextOf(bytes), Golden(name)) << name;
    std::memcpy(bytes, Golden(name).data(), sizeof(bytes));
    net::BulkHeader header;
    ASSERT_TRUE(net::Decode(bytes, kTag, &header)) << name;
    EXPECT_EQ(header.type, value.type) << name;
    EXPECT_EQ(header.chunk.bytes, value.chunk.bytes) << name;
  }
}

TEST(Wire, HandlesNegotiate) {
  const std::string old = Golden("handle");
  EXPECT_EQ(TextOf(HandleOf(kOldWireLeast, kOldWire)), old);
  net::Handle handle;
  ASSERT_TRUE(net::ReadHandle(old.data(), &handle));
  EXPECT_EQ(net::NegotiateVersion(handle.wire_least, handle.wire_newest), kOldWire);
  EXPECT_EQ(net::NegotiateVersion(kOldWireLeast, kOldWireLeast), 0u) << "older than the last release";
  EXPECT_TRUE(SameBut(TextOf(HandleOf(net::kWireVersionLeast, net::kWireVersion)), old,
                      {{offsetof(net::Handle, wire_least), offsetof(net::Handle, wire_newest) + sizeof(uint32_t)},
                       {offsetof(net::Handle, checksum), offsetof(net::Handle, checksum) + sizeof(net::Handle::checksum)}}));
}

// ---- between a plugin and its daemon ----

TEST(Attach, ARequestOfTheOldReleaseIsSoundAndOursBeginsLikeIt) {
  const std::string old = Golden("attach_request");
  plan::AttachRequest request{};
  ASSERT_EQ(old.size(), plan::AttachRequestBytes(kOldAttach));
  std::memcpy(&request, old.data(), old.size());
  EXPECT_TRUE(plan::Valid(request));
  EXPECT_TRUE(plan::IsAttachVersion(request.version));
  EXPECT_STREQ(request.job, "train");
  EXPECT_STREQ(request.release, kOldRelease);
  plan::AttachRequest ours{};
  FillRequest(&ours);
  EXPECT_EQ(TextOf(ours, old.size()), old);
  EXPECT_FALSE(plan::IsAttachVersion(kOldAttach - 1)) << "older than the last release";
}

TEST(Attach, AReplyIsTheSameBytes) {
  const std::string old = Golden("attach_reply");
  plan::AttachReply reply{};
  FillReply(&reply);
  EXPECT_EQ(TextOf(reply), old);
  plan::AttachReply taken{};
  EXPECT_EQ(net::CheckReply(old.data(), old.size(), 2, &taken), "");
  EXPECT_STREQ(taken.node, "n0");
}

TEST(Attach, TheOldDaemonsRefusalNamesTheVersionToAskIn) {
  const std::string old = Golden("attach_refusal");
  EXPECT_EQ(net::VersionToAskIn(old.data(), old.size(), kOldAttach + 1), kOldAttach);
}

std::string HeadOf(int fd, size_t bytes) {
  std::string head(bytes, '\0');
  EXPECT_EQ(pread(fd, head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
  return head;
}

// Shared memory as the old daemon hands it over.
int OpenGolden(const std::string& name, size_t bytes, int seals) {
  const std::string head = Golden(name);
  const int fd = memfd_create("golden", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(pwrite(fd, head.data(), head.size(), 0), static_cast<ssize_t>(head.size()));
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

std::unique_ptr<plan::PageReader> OpenGoldenPage(const std::string& name) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | 0x10 /* F_SEAL_FUTURE_WRITE */;
  std::string error;
  auto reader = plan::PageReader::Open(OpenGolden(name, plan::kPageBytes, kSeals), &error);
  EXPECT_NE(reader, nullptr) << error;
  return reader;
}

TEST(Page, TheOldDaemonsIsRead) {
  const auto reader = OpenGoldenPage("page");
  ASSERT_NE(reader, nullptr);
  ASSERT_EQ(reader->Refresh(), plan::PageReader::Read::kNew);
  EXPECT_EQ(reader->copy().epoch, PlanOnPage().epoch);
  EXPECT_EQ(reader->copy().entries.size(), plan::PageCopyOf(PlanOnPage()).entries.size());
  EXPECT_TRUE(reader->copy().DrainedFor("train", "n1", "rail0"));
  EXPECT_TRUE(reader->copy().PathBroken("n0", "rail0", "n1", "rail1"));
  EXPECT_FALSE(reader->ended());
  EXPECT_FALSE(reader->Stale(kHeartbeat + plan::kPageStaleAfter));
  EXPECT_TRUE(reader->Stale(kHeartbeat + plan::kPageStaleAfter + 1));
}

TEST(Page, TheOldDaemonsEndOnThePageCounts) {
  const auto reader = OpenGoldenPage("page_ended");
  ASSERT_NE(reader, nullptr);
  EXPECT_TRUE(reader->ended());
  EXPECT_FALSE(reader->Stale(kHeartbeat + plan::kPageEndLease));
  EXPECT_TRUE(reader->Stale(kHeartbeat + plan::kPageEndLease + 1));
}

// How shared memory begins: the versions alone may be others.
constexpr Field kVersions = {8, 16};

struct Versions {
  uint32_t least;
  uint32_t newest;
};
Versions VersionsIn(const std::string& head) {
  Versions versions;
  std::memcpy(&versions, head.data() + kVersions.begin, sizeof(versions));
  return versions;
}

// What version 3 adds where the old plugin looks at nothing: the offset of the clock, the key, the entries' tags. And the checksum, which
// is over what stands there.
std::vector<Field> OfVersion3() {
  std::vector<Field> fields = {kVersions,
                               {offsetof(plan::PageLayout, checksum), offsetof(plan::PageLayout, checksum) + sizeof(uint64_t)},
                               {offsetof(plan::PageLayout, clock_offset_ns), offsetof(plan::PageLayout, body)}};
  const size_t entries = offsetof(plan::PageLayout, body) + plan::kPageBodyEntries * sizeof(uint64_t);
  for (size_t at = entries; at < kPageHeadBytes; at += sizeof(plan::PageEntry))
    fields.push_back({at + offsetof(plan::PageEntry, tag), at + offsetof(plan::PageEntry, tag) + sizeof(plan::PageEntry::tag)});
  return fields;
}

TEST(Page, TheOldPluginFindsInOursWhatItLooksFor) {
  std::string error;
  const auto writer = plan::PageWriter::Create(&error);
  ASSERT_TRUE(writer != nullptr && writer->Publish(PlanOnPage(), kHeartbeat, &error)) << error;
  const std::string head = HeadOf(writer->fd(), kPageHeadBytes);
  EXPECT_TRUE(SameBut(head, Golden("page"), OfVersion3()));
  EXPECT_EQ(Negotiated(VersionsIn(head).least, VersionsIn(head).newest, kOldPageLeast, kOldPage), kOldPage);
  writer->EndOnPurpose(kHeartbeat);
  EXPECT_TRUE(SameBut(HeadOf(writer->fd(), kPageHeadBytes), Golden("page_ended"), OfVersion3()));
}

TEST(Ring, TheOldDaemonsIsWrittenAsTheOldPluginDid) {
  const int fd = OpenGolden("ring", sizeof(plan::RingLayout), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  const int own = dup(fd);
  std::string error;
  const auto writer = plan::EvidenceRingWriter::Open(fd, &error);
  ASSERT_NE(writer, nullptr) << error;
  for (const plan::EvidenceRecord& record : Evidence()) EXPECT_TRUE(writer->Put(record));
  EXPECT_EQ(HeadOf(own, kRingHeadBytes), Golden("ring_filled"));
  close(own);
}

TEST(Ring, OursIsTheOldDaemonsAndWhatTheOldPluginWritesIsTaken) {
  std::string error;
  const auto reader = plan::EvidenceRingReader::Create(&error);
  ASSERT_NE(reader, nullptr) << error;
  const std::string head = HeadOf(reader->fd(), kRingHeadBytes);
  // The old plugin looks at none of: the newest cause, the offset of the clock, the newest kind.
  const Field new_reasons = {offsetof(plan::RingLayout, newest_cause), offsetof(plan::RingLayout, newest_kind) + sizeof(uint64_t)};
  EXPECT_TRUE(SameBut(head, Golden("ring"), {kVersions, new_reasons}));
  EXPECT_EQ(Negotiated(VersionsIn(head).least, VersionsIn(head).newest, kOldRing, kOldRing), kOldRing);
  const std::string filled = Golden("ring_filled");
  ASSERT_EQ(pwrite(reader->fd(), filled.data(), filled.size(), 0), static_cast<ssize_t>(filled.size()));
  const std::vector<plan::EvidenceRecord> sent = Evidence();
  std::vector<plan::EvidenceRecord> taken;
  EXPECT_EQ(reader->Take(1000, &taken), static_cast<int>(sent.size()));
  EXPECT_EQ(reader->garbled(), 0u);
  ASSERT_EQ(taken.size(), sent.size());
  for (size_t i = 0; i < sent.size(); ++i) EXPECT_EQ(TextOf(taken[i]), TextOf(sent[i])) << i;
}

// ---- between daemons ----

TEST(Peers, AViewOfTheOldDaemonIsBelieved) {
  const std::string old = Golden("view");
  EXPECT_EQ(View().SerializeAsString(), old);
  v1::NodeView view;
  ASSERT_TRUE(view.ParseFromString(old));
  EXPECT_EQ(daemon::ForeignProtocol(view), "");
  const auto state = daemon::FromProto(view, daemon::Moment());
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->nics.at(0).state, health::NicState::kFailed);
  EXPECT_EQ(state->nics.at(0).drained_jobs, std::vector<std::string>{"train"});
  EXPECT_EQ(state->probe_nonce, Prober().nonce());
  EXPECT_EQ(state->probe_key, Prober().public_key());
  ASSERT_FALSE(state->pairs.empty());
  EXPECT_TRUE(state->pairs.begin().silent());
  ASSERT_EQ(state->rdma_ends.size(), 1u);
  EXPECT_EQ(health::DecodeRdmaEnd(state->rdma_ends[0].end), RdmaEndOfAPair());
  // As the old daemon judges ours.
  EXPECT_EQ(Negotiated(daemon::kPeerProtocolLeast, daemon::kPeerProtocol, kOldPeersLeast, kOldPeers), kOldPeers);
  // Older than the last release.
  view.set_release("0.1.0");
  view.set_protocol_newest(kOldPeersLeast);
  EXPECT_EQ(daemon::ForeignProtocol(view), "the daemon of n1 (release 0.1.0) speaks protocol 2, this one " +
                                               VersionRange(daemon::kPeerProtocolLeast, daemon::kPeerProtocol) +
                                               ": install releases next to each other, and one on all nodes in the end");
}

TEST(Peers, ProbesAreTheSameBytes) {
  const std::string key = Golden("probe_key");
  EXPECT_EQ(TextOf(ProbeKey()), key);
  EXPECT_EQ(Probed().Agree(Prober().nonce(), Prober().public_key()), ProbeKey()) << "both ends agree on one key";
  for (const auto& [name, kind] : {std::pair("probe_ping", health::RailProbeKind::kPing), {"probe_pong", health::RailProbeKind::kPong}}) {
    EXPECT_EQ(TextOf(health::EncodeRailProbe(ProbeOf(kind), ProbeKey())), Golden(name)) << name;
    const net::Bytes bytes = GoldenBytes(name);
    EXPECT_EQ(health::DecodeRailProbe(bytes), ProbeOf(kind)) << name;
    EXPECT_TRUE(health::IsAuthentic(bytes, ProbeKey())) << name;
  }
  EXPECT_EQ(health::EncodeRdmaEnd(RdmaEndOfAPair()), Golden("rdma_end"));
}

TEST(State, TheOldFileIsReadAndOursIsTheSame) {
  const std::string old = Golden("state");
  const auto state = daemon::DecodeState(old, "state");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(*state, State());
  EXPECT_EQ(daemon::EncodeState(*state), old) << "a downgrade reads it";
}

}  // namespace
}  // namespace r2cc::golden
