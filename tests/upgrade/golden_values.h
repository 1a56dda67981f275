// The values that the frozen bytes of release 0.2.0 (golden/0.2.0) encode. make_golden wrote the files from this source in the tree of
// 0.2.0.
//
// The files and the values describe 0.2.0 until the next release begins. A change of a format leaves them as they are:
// - A new frame type, evidence kind, cause or message does not enter here: each list ends with the last one of 0.2.0. A test next to the
// sender
//   shows that a peer of 0.2.0 never receives a new one.
// - A new field keeps its default here. golden_test sets it in `ours`, next to the release, and shows that 0.2.0 still finds its own bytes.
// - A new version of a protocol is in the protocol's range only. The versions below stay.
// A golden test that fails is a format that 0.2.0 no longer understands. Mend the format, not the files.
#ifndef R2CC_TESTS_UPGRADE_GOLDEN_VALUES_H_
#define R2CC_TESTS_UPGRADE_GOLDEN_VALUES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/hash.h"
#include "daemon/state/saved_state.h"
#include "health/io/rdma_end.h"
#include "health/probe/probe_key.h"
#include "health/probe/rail_wire.h"
#include "netplugin/link/frame.h"
#include "netplugin/transport/handle.h"
#include "plan/model.h"
#include "plan/page/attach.h"
#include "plan/page/ring.h"
#include "plan/page/text.h"
#include "proto/r2cc.pb.h"

namespace r2cc::golden {

constexpr char kOldRelease[] = "0.2.0";
// The versions that release 0.2.0 speaks.
constexpr uint32_t kOldWireLeast = 4;
constexpr uint32_t kOldWire = 5;
constexpr uint32_t kOldAttach = 2;
constexpr uint32_t kOldPageLeast = 1;
constexpr uint32_t kOldPage = 2;
constexpr uint32_t kOldRing = 1;
constexpr uint32_t kOldPeersLeast = 2;
constexpr uint32_t kOldPeers = 3;
// Its last frame type, and the last kind and cause of its evidence.
constexpr uint16_t kOldFrames = 20;
constexpr uint32_t kOldEvidenceKinds = 7;
constexpr uint32_t kOldEvidenceCauses = 9;

constexpr uint32_t kTag = 0x1234'5678;
constexpr Nanos kHeartbeat = 1'000 * kNanosPerSecond;

inline std::vector<net::RailInfo> Rails() {
  return {{"rail0", true, {{net::TransportKind::kTcp, {2, 0, 0x1d, 0x24, 10, 1, 0, 1}}, {net::TransportKind::kVerbs, {7, 8, 9}}}},
          {"rail1", false, {{net::TransportKind::kTcp, {}}}}};
}

inline net::Hello OobHello() {
  net::Hello hello;
  hello.wire_least = kOldWireLeast;
  hello.wire_newest = kOldWire;
  hello.kind = net::ConnectionKind::kOob;
  hello.nonce = 0x0102'0304'0506'0708;
  hello.target_process = 0x1112'1314'1516'1718;
  hello.session = 0x2122'2324'2526'2728;
  hello.process = 0x3132'3334'3536'3738;
  hello.node = "n0";
  hello.oob_address = "10.9.0.10";
  hello.oob_port = 40'000;
  hello.links = 2;
  hello.rails = Rails();
  hello.release = kOldRelease;
  return hello;
}

inline net::Hello LinkHello() {
  net::Hello hello = OobHello();
  hello.kind = net::ConnectionKind::kLink;
  hello.link = 1;
  hello.local_rail = 1;
  hello.remote_rail = 0;
  hello.incarnation = 3;
  hello.transport = net::TransportKind::kTcp;
  hello.endpoint = {1, 2, 3};
  hello.rails.clear();
  hello.release.clear();
  return hello;
}

inline net::HelloReply Reply() {
  net::HelloReply reply;
  reply.wire_version = kOldWire;
  reply.accepted = true;
  reply.node = "n1";
  reply.rails = Rails();
  reply.release = kOldRelease;
  return reply;
}

inline net::HelloReply Refusal() {
  net::HelloReply reply;
  reply.wire_version = kOldWire;
  reply.reason = "no such rail";
  return reply;
}

// The ranges have no version in common: the reply names none, and has no release.
inline net::HelloReply VersionRefusal() {
  net::HelloReply reply;
  reply.wire_version = 0;
  reply.reason = "it speaks wire versions 4 to 5, we speak 6 to 7: install the same release on both nodes";
  return reply;
}

// One of each type, with its name as the file's.
inline std::vector<std::pair<std::string, net::Frame>> Frames() {
  namespace frames = net::frames;
  constexpr uint64_t kNumber = 0x1122'3344'5566'7788;
  const std::vector<net::RailEndpoint> keys = {{net::TransportKind::kTcp, {}}, {net::TransportKind::kVerbs, {1, 2, 0, 255}}};
  const net::Region region{5, 2, 0x10000, 4096, {keys, {}, {{net::TransportKind::kVerbs, {7}}}}};
  const std::vector<net::FlowArrivals> arrivals = {{7, 41, {{42, 4096, {true, false, true}}, {44, 4096, std::vector<bool>(17, true)}}},
                                                   {8, 0, {}}};
  const uint64_t rails = net::NumberOf({5, 6, net::TransportKind::kVerbs});
  const net::Frame all[kOldFrames] = {
      frames::FlowOpen{7, kNumber, 2},
      frames::FlowOpened{7, true, 2, kNumber},
      net::FlowReport{7, 42, true, {4096, 8192}, {{5, 2, 4096}, {}}},
      net::FlowReport{7, 42, false, {}, {}},
      frames::Fence{3, 9, 2},
      frames::Fenced{3, 9, 2, kNumber, 1, 3, arrivals},
      frames::FencedAck{3, 9},
      frames::Proved{3, 9, true},
      frames::Ping{kNumber},
      frames::Pong{kNumber},
      frames::FlowEnd{7},
      frames::FlowEnded{7},
      frames::Bye{7, 42},
      frames::ByeAck{7},
      frames::RailUp{kNumber},
      frames::Want{7, 42},
      frames::RegionAnnounced{std::make_shared<net::Region>(region)},
      frames::RegionKnown{kNumber, 9},
      frames::LinkOffer{3, 9, rails, {1, 2, 0, 255}},
      frames::LinkAnswer{3, 9, true, {1, 2, 0, 255}},
  };
  std::vector<std::pair<std::string, net::Frame>> named;
  for (const net::Frame& frame : all) named.emplace_back("frame_" + std::to_string(named.size() + 1), frame);
  return named;
}

inline net::BulkHeader Bulk() {
  net::BulkHeader header;
  header.type = net::BulkType::kChunk;
  header.chunk.flow = 7;
  header.chunk.message = 42;
  header.chunk.message_bytes = 1 << 20;
  header.chunk.chunk_bytes = 1 << 17;
  header.chunk.index = 3;
  header.chunk.bytes = 1 << 17;
  header.checksummed = true;
  header.payload_crc = 0xcafe'f00d;
  return header;
}

inline net::BulkHeader BulkProof() {
  net::BulkHeader header;
  header.type = net::BulkType::kProof;
  header.chunk.bytes = header.chunk.chunk_bytes = 4096;
  header.chunk.message_bytes = 4096;
  return header;
}

inline net::Handle HandleOf(uint32_t least, uint32_t newest) {
  net::Handle handle{};
  handle.magic = net::kHandleMagic;
  handle.wire_least = least;
  handle.wire_newest = newest;
  handle.process = 0x1112'1314'1516'1718;
  handle.nonce = 0x0102'0304'0506'0708;
  handle.listen_id = 99;
  handle.oob_port = 40'000;
  plan::SetText("10.9.0.11", handle.oob_address);
  handle.checksum = net::HandleChecksum(handle);
  return handle;
}

// Written over bytes that are zero: there is padding between the fields.
inline void FillRequest(plan::AttachRequest* request) {
  request->magic = plan::kAttachMagic;
  request->version = kOldAttach;
  request->pid = 4711;
  request->rail_count = 2;
  request->process_id = 0x3132'3334'3536'3738;
  plan::SetText("train", request->job);
  plan::SetText(kOldRelease, request->release);
  for (uint32_t i = 0; i < 2; ++i) {
    plan::AttachRail& rail = request->rails[i];
    plan::SetText(i == 0 ? "eth1" : "eth2", rail.name);
    plan::SetText(i == 0 ? "127.9.0.1" : "127.9.0.2", rail.address);
    plan::SetText("0000:81:00.0", rail.pci);
    rail.guid = 0xabcd + i;
    rail.mac[5] = static_cast<uint8_t>(i + 1);
    rail.netns_inode = 4026531840;
  }
}

inline void FillReply(plan::AttachReply* reply) {
  reply->magic = plan::kAttachMagic;
  reply->version = kOldAttach;
  reply->status = static_cast<uint32_t>(plan::AttachStatus::kAccepted);
  reply->rail_count = 2;
  plan::SetText("n0", reply->node);
  plan::SetText("rail0", reply->nics[0]);
}

// The answer to a request of a later version.
inline void FillRefusal(plan::AttachReply* reply) {
  reply->magic = plan::kAttachMagic;
  reply->version = kOldAttach;
  reply->status = static_cast<uint32_t>(plan::AttachStatus::kWrongVersion);
  plan::SetText("attach version 3, this r2ccd speaks 1 to 2: upgrade r2ccd or the plugin", reply->reason);
}

inline plan::Plan PlanOnPage() {
  plan::Plan plan;
  plan.epoch = {0x5152'5354'5556'5758, 12};
  plan.nics.push_back({"n0", "rail0", plan::PlannedState::kHealthy, 1000});
  plan.nics.push_back({"n0", "rail1", plan::PlannedState::kFailed, 0});
  plan.nics.push_back({"n1", "rail0", plan::PlannedState::kDegraded, 600});
  plan.nics.back().drained_jobs = {"train"};
  plan.broken_paths.push_back({"n0", "rail0", "n1", "rail1"});
  return plan;
}

// Of the page: its header, the words before the entries, and PlanOnPage()'s 5 entries.
constexpr size_t kPageHeadBytes = 64 + 4 * 8 + 5 * 24;

// One record of each kind, then one of each cause.
inline std::vector<plan::EvidenceRecord> Evidence() {
  std::vector<plan::EvidenceRecord> records;
  for (uint32_t i = 0; i < kOldEvidenceKinds + kOldEvidenceCauses; ++i) {
    plan::EvidenceRecord record{};
    const bool of_a_kind = i < kOldEvidenceKinds;
    record.kind = of_a_kind ? i + 1 : static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkFenced);
    record.cause = of_a_kind ? 0 : i - kOldEvidenceKinds + 1;
    record.time_ns = kHeartbeat + i;
    record.local_rail = 1;
    record.incarnation = 600;  // or the share
    record.bytes = 0x1112'1314'1516'1718;
    record.received_bytes = 0x2122'2324'2526'2728;
    record.replayed_bytes = 0x3132'3334'3536'3738;
    record.duration_ns = 0x4142'4344'4546'4748;
    plan::SetText("n1", record.peer_node);
    plan::SetText("rail0", record.peer_nic);
    records.push_back(record);
  }
  return records;
}

// The ring's beginning: its header and Evidence()'s records.
constexpr size_t kRingHeadBytes = 3 * 64 + (kOldEvidenceKinds + kOldEvidenceCauses) * 144;

// ---- between daemons ----

// The keys of two daemons' probes; the secrets are any.
inline health::ProbeIdentity IdentityOf(uint8_t first) {
  health::ProbeSecret secret;
  for (size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<uint8_t>(first + i);
  return health::ProbeIdentity(secret);
}
inline health::ProbeIdentity Prober() { return IdentityOf(0x20); }
inline health::ProbeIdentity Probed() { return IdentityOf(0x60); }
// The key that the two agree on.
inline health::ProbeMacKey ProbeKey() { return Prober().Agree(Probed().nonce(), Probed().public_key()).value_or(health::ProbeMacKey{}); }

inline health::RailProbe ProbeOf(health::RailProbeKind kind) {
  return {.kind = kind,
          .to_nonce = Probed().nonce(),
          .from_nonce = Prober().nonce(),
          .pair = 0x1112'1314'1516'1718,
          .sequence = 42,
          .sent_ns = kHeartbeat,
          .nic_hash = Fnv1a64("n0/rail0")};
}

inline health::RdmaEnd RdmaEndOfAPair() {
  return {.number = 0x1234,
          .psn = 0x56789a,
          .meets = 0x4321,
          .lid = 7,
          .mtu_bytes = 4096,
          .gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 2}};
}

inline v1::NodeView View() {
  v1::NodeView view;
  view.set_node("n1");
  view.mutable_epoch()->set_incarnation(0x5152'5354'5556'5758);
  view.mutable_epoch()->set_counter(12);
  view.set_word(v1::NODE_DEGRADED);
  view.set_peer_address("10.9.0.11:7460");
  view.set_release(kOldRelease);
  view.set_protocol(kOldPeersLeast);
  view.set_protocol_newest(kOldPeers);
  view.set_jobs_of_other_releases(2);
  view.set_probe_nonce(Prober().nonce());
  view.set_probe_key(Prober().public_key().data(), Prober().public_key().size());
  view.set_clock_ns(1'795'564'800 * kNanosPerSecond);
  v1::NicView& nic = *view.add_nics();
  nic.set_name("rail0");
  nic.set_address("10.1.0.2");
  nic.set_mac("02:00:00:00:00:01");
  nic.set_pci("0000:81:00.0");
  nic.set_state(v1::FAILED);
  nic.set_reason("link down");
  nic.set_since_ns(1'795'564'799 * kNanosPerSecond);
  nic.set_rate_bits_per_s(100'000'000'000);
  nic.set_link_up(true);
  nic.set_drained(true);
  nic.set_operator_weight_permille(1000);
  nic.set_drill_failed(true);
  nic.set_drill_ends_ns(1'795'564'900 * kNanosPerSecond);
  nic.set_flaps_total(3);
  nic.set_share_permille(500);
  nic.set_port_guid(0x0002'c903'0000'1234);
  nic.set_probe_port(7460);
  nic.set_port_dead(true);
  nic.set_probe_trouble("no route");
  nic.add_drained_jobs("train");
  v1::RailPair& pair = *view.add_pairs();
  pair.set_nic("rail0");
  pair.set_peer_node("n0");
  pair.set_peer_nic("rail0");
  pair.set_silent(true);
  pair.set_broken(true);
  v1::RdmaEnd& end = *view.add_rdma_ends();
  end.set_nic("rail0");
  end.set_peer_node("n0");
  end.set_peer_nic("rail0");
  end.set_end(health::EncodeRdmaEnd(RdmaEndOfAPair()));
  return view;
}

inline daemon::SavedState State() {
  daemon::SavedState state;
  state.boot_id = "3f0c1a5e-0000-4000-8000-000000000001";
  state.boot_time = 77 * kNanosPerSecond;
  health::OperatorSettings& settings = state.settings;
  settings["rail0"].drained = true;
  settings["rail0"].drained_jobs = {"eval", "train"};
  settings["rail1"].weight_permille = 400;
  settings["rail1"].drill_failed = true;
  settings["rail1"].drill_until = 90 * kNanosPerSecond;
  state.cabled = {"rail0", "rail1"};
  return state;
}

}  // namespace r2cc::golden

#endif  // R2CC_TESTS_UPGRADE_GOLDEN_VALUES_H_
