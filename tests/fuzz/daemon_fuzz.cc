// The whole daemon in simulated time, and around it a world that means no good: views of peers and of the store (etcd's or another
// daemon's), datagrams on the rails, jobs and their evidence rings, /sys, the subnet manager, requests from r2ccctl and from peers,
// restarts.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/check.h"
#include "base/core/hash.h"
#include "base/log.h"
#include "daemon/core/convert.h"
#include "daemon/fake_world.h"
#include "health/probe/probe_key.h"
#include "health/probe/rail_wire.h"
#include "health/probe/sa_mad.h"
#include "plan/page/attach.h"
#include "plan/page/ring.h"
#include "plan/planner.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/messages.h"

namespace {

using namespace r2cc;  // NOLINT

constexpr char kConfig[] = R"(node: "n0" peers { node: "n1" address: "h1:7460" } peers { node: "n2" address: "h2:7460" }
    nics { name: "rail0" interface: "eth0" } nics { name: "rail1" interface: "eth1" cable_to: "n1/rail1" }
    nics { name: "ib0" port_guid: "0x0002c9030000abcd" })";
constexpr uint64_t kGuid = 0x0002c9030000abcd;
constexpr const char* kNames[] = {"",         "n0",       "n1",   "n2",   "n3",       "rail0",        "rail1",   "ib0",
                                  "10.0.0.2", "10.0.1.2", "eth0", "eth1", "10.0.0.1", "0000:81:00.0", "h1:7460", "train"};
constexpr const char* kSysfs[][2] = {{"class/net/eth0/ifindex", "1"},
                                     {"class/net/eth0/speed", "100000"},
                                     {"class/net/eth0/statistics/rx_crc_errors", "5000"},
                                     {"class/net/eth0/carrier_changes", "7"},
                                     {"class/infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:0002:c903:0000:abcd"},
                                     {"class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE"},
                                     {"class/infiniband/mlx5_0/ports/1/lid", "0x12"},
                                     {"class/infiniband/mlx5_0/ports/1/sm_lid", "0x1"}};

bool PlainLine(const std::string& text) {
  for (const char c : text)
    if (c < ' ' || c > '~') return false;
  return true;
}

// Into a field of zeros, which it may fill to its last byte.
void Put(const std::string& text, char* field, size_t bytes) { std::memcpy(field, text.data(), std::min(text.size(), bytes)); }

class Fuzzed : daemon::FakeWorld {
 public:
  explicit Fuzzed(fuzz::Input input) : input_(input), jobs_alone_(input_.Below(4) == 0) {
    for (const auto& [path, text] : kSysfs) sysfs_.Set(path, text);
    Restart();
    Open("10.0.0.2");
    Open("10.0.1.2");
  }

  void Run() {
    while (!input_.empty()) {
      jobs_alone_ ? StepOfJobs() : Step();
      Settle();
    }
    Ask();
    Check();
  }

 private:
  void Restart() {
    MakeDaemon(kConfig, ++starts_);
    wiring_->SetPeerAddress("h0:7460");
    Settle();
  }

  void StepOfJobs() {
    switch (input_.Below(4)) {
      case 0: return Attach();
      case 1: return jobs_->End(TakeJob());
      case 2: return core_.Advance(static_cast<Nanos>(input_.Take<uint8_t>()) * 10 * kNanosPerMs);
      default: return ReportEvidence();
    }
  }

  void Step() {
    switch (input_.Below(16)) {
      case 0: {
        const uint64_t stream = 1 + input_.Below(3);
        if (input_.Below(8) == 0) return wiring_->backend().EndStream(stream);
        return wiring_->backend().ReceiveView(TakeView(), stream, {.address = "10.0.0.2:5000"});
      }
      case 1: return peers_->Receive(input_.TakeBool() ? "n1" : "n2", TakeView());
      case 2: return input_.TakeBool() ? peers_->Connect("n1") : peers_->Lose("n1", input_.TakeString(input_.Below(64)));
      case 3: return ChangeStore();
      case 4: return SendDatagram();
      case 5: return AnswerPing();
      case 6: return input_.TakeBool() ? links_->Set("eth0", input_.TakeBool()) : links_->Remove(input_.TakeBool() ? "eth0" : "eth1");
      case 7: {
        const auto& [path, text] = kSysfs[input_.Below(std::size(kSysfs))];
        return sysfs_.Set(path, input_.TakeBool() ? text : input_.TakeString(input_.Below(40)));
      }
      case 8: return SendMad();
      case 9: return ActOnNic();
      case 10: return Ask();
      case 11: return Restart();
      default: return StepOfJobs();
    }
  }

  // ---- peers and the store ----

  // Well-formed more often than not, so that what lies behind the checks is reached.
  v1::NodeView TakeView() {
    v1::NodeView view;
    if (input_.TakeBool()) {
      fuzz::Fill(&input_, kNames, &view);
      return view;
    }
    view.set_node(input_.TakeBool() ? "n1" : "n2");
    view.mutable_epoch()->set_incarnation(1 + input_.Below(3));
    view.mutable_epoch()->set_counter(input_.Take<uint8_t>());
    if (const size_t known = input_.Below(4); known > 0) {
      const health::ProbeIdentity& identity = OtherIdentity(known - 1);
      view.set_probe_nonce(identity.nonce());
      view.set_probe_key(identity.public_key().data(), identity.public_key().size());
    }
    for (size_t i = 0, nics = input_.Below(4); i < nics; ++i) {
      v1::NicView* nic = view.add_nics();
      if (input_.TakeBool()) fuzz::Fill(&input_, kNames, nic);
      nic->set_name(absl::StrCat("rail", i));
      nic->set_state(static_cast<v1::NicState>(1 + input_.Below(6)));
      nic->set_operator_weight_permille(static_cast<uint32_t>(input_.TakeNumber() % 1001));
      nic->set_address(absl::StrCat("10.0.", i, ".2"));
      nic->set_probe_port(7460);
    }
    for (size_t i = 0, pairs = input_.Below(4); i < pairs && view.nics_size() > 0; ++i) {
      v1::RailPair* pair = view.add_pairs();
      pair->set_nic("rail0");
      pair->set_peer_node(fuzz::TakeName(&input_, kNames));
      pair->set_peer_nic(fuzz::TakeName(&input_, kNames));
      pair->set_silent(input_.TakeBool());
    }
    return view;
  }

  void ChangeStore() {
    const std::string key = absl::StrCat("/r2cc/nodes/", fuzz::TakeName(&input_, kNames));
    switch (input_.Below(5)) {
      case 0: return store_->Delete(key);
      case 1: return store_->SetState(input_.TakeBool() ? "lost: it ended" : "connected to n1");
      case 2: return store_->Change(input_.TakeString(input_.Below(32)), "");
      case 3: return store_->Change(key, input_.TakeString(input_.Below(200)));
      default: return store_->Change(key, TakeView().SerializeAsString());
    }
  }

  // ---- rails ----

  void Open(const std::string& address) {
    auto socket = others_.Open({"", address, 7460}, {[this](const std::vector<health::Datagram>& batch) {
                                                       for (const auto& datagram : batch) last_ping_ = datagram.bytes;
                                                     },
                                                     [](const health::DatagramError&) {}});
    R2CC_CHECK(socket.ok());
    sockets_.push_back(*std::move(socket));
  }
  void Send(std::string_view bytes) {
    const std::string to = input_.TakeBool() ? "10.0.0.1" : "10.0.1.1";
    (void)sockets_[input_.Below(sockets_.size())]->Send({to, 7460}, bytes);
    core_.Advance(kNanosPerMs);
  }
  // The keys that those around have, and the daemon's own: its world's are not random.
  static const health::ProbeIdentity& OtherIdentity(size_t which) {
    static const health::ProbeIdentity identities[] = {health::ProbeIdentity({0, 2}), health::ProbeIdentity({0, 3}),
                                                       health::ProbeIdentity({0, 4})};
    return identities[which % std::size(identities)];
  }
  static const health::ProbeIdentity& Own() {
    static const health::ProbeIdentity own({0, 1});
    return own;
  }
  void Send(const health::RailProbe& probe) {
    health::ProbeMacKey key{};
    for (size_t which = 0; which < 3; ++which)
      if (OtherIdentity(which).nonce() == probe.from_nonce) key = *OtherIdentity(which).Agree(Own().nonce(), Own().public_key());
    if (input_.Below(8) == 0) key[0] ^= 1;
    const bool large = probe.kind == health::RailProbeKind::kLargePing || probe.kind == health::RailProbeKind::kLargePong;
    Send(health::Padded(health::EncodeRailProbe(probe, key), large ? probe.bytes : 0));
  }
  void SendDatagram() {
    if (input_.TakeBool()) return Send(input_.TakeString(input_.Below(100)));
    health::RailProbe probe;
    probe.kind = static_cast<health::RailProbeKind>(1 + input_.Below(5));
    if (probe.kind >= health::RailProbeKind::kLargePing) probe.bytes = static_cast<uint16_t>(input_.Below(10'000));
    probe.to_nonce = Own().nonce();
    probe.from_nonce = OtherIdentity(input_.Below(3)).nonce();
    probe.pair = input_.TakeNumber();
    probe.sequence = input_.TakeNumber();
    probe.sent_ns = static_cast<Nanos>(input_.TakeNumber());
    probe.nic_hash = Fnv1a64(input_.TakeBool() ? "n0/rail0" : "n0/rail1");
    Send(probe);
  }
  // As an honest peer would, or nearly so.
  void AnswerPing() {
    auto probe = health::DecodeRailProbe({reinterpret_cast<const uint8_t*>(last_ping_.data()), last_ping_.size()});
    if (!probe.has_value()) return;
    std::swap(probe->to_nonce, probe->from_nonce);
    probe->kind = health::RailProbeKind::kPong;
    if (input_.Below(4) == 0) probe->sent_ns = static_cast<Nanos>(input_.TakeNumber());
    if (input_.Below(4) == 0) probe->sequence += input_.Take<int8_t>();
    Send(*probe);
  }

  void SendMad() {
    if (!fabric_.IsOpen("mlx5_0/1")) return core_.Advance(2 * kNanosPerSecond);
    health::FabricHandler& handler = fabric_.handler("mlx5_0/1");
    const health::FabricAddress from{static_cast<uint16_t>(input_.Below(3)), 0};
    switch (input_.Below(4)) {
      case 0: return handler.on_timeout();
      case 1: return handler.on_lost(absl::UnavailableError("the device is gone"));
      case 2: {
        std::string mad = input_.TakeString(health::kMadBytes);
        mad.resize(health::kMadBytes);
        return handler.on_mad(mad, from);
      }
      default: {
        health::SaNotice notice;
        constexpr uint16_t kTraps[] = {64, 65, 128, 129, 130, 131, 144, 66};
        notice.trap = kTraps[input_.Below(std::size(kTraps))];
        notice.guid = input_.TakeBool() ? kGuid : input_.TakeNumber();
        notice.lid = input_.Take<uint16_t>();
        notice.port = input_.Take<uint8_t>();
        return handler.on_mad(health::EncodeReport(input_.Take<uint32_t>(), notice), from);
      }
    }
  }

  // ---- jobs ----

  // One that is attached, if any is.
  daemon::JobId TakeJob() { return jobs_attached_ == 0 ? 1 : 1 + input_.Below(jobs_attached_); }
  void Attach() {
    plan::AttachRequest request{};
    request.magic = plan::kAttachMagic;
    request.version = plan::kAttachVersion;
    request.rail_count = static_cast<uint32_t>(input_.Below(plan::kAttachRailsMax + 2));
    for (uint32_t i = 0; i < request.rail_count && i < plan::kAttachRailsMax && !input_.empty(); ++i) {
      plan::AttachRail& rail = request.rails[i];
      Put(fuzz::TakeName(&input_, kNames), rail.name, sizeof(rail.name));
      Put(fuzz::TakeName(&input_, kNames), rail.address, sizeof(rail.address));
      Put(fuzz::TakeName(&input_, kNames), rail.pci, sizeof(rail.pci));
      rail.guid = input_.TakeBool() ? kGuid : 0;
      rail.netns_inode = input_.TakeBool() ? 5 : 0;
    }
    if (!plan::Valid(request)) return;  // its server refuses it
    const daemon::AttachDecision decision = jobs_->Attach(++jobs_attached_, 1000, request);
    R2CC_CHECK(decision.refused.empty() && decision.node == "n0" && decision.nics.size() == request.rail_count);
  }
  // Through a ring, as jobs do.
  void ReportEvidence() {
    static plan::EvidenceRingReader& reader = *[] {
      std::string error;
      return plan::EvidenceRingReader::Create(&error).release();
    }();
    static plan::EvidenceRingWriter& writer = *[] {
      std::string error;
      return plan::EvidenceRingWriter::Open(dup(reader.fd()), &error).release();
    }();
    const daemon::JobId job = TakeJob();
    for (size_t i = 0, records = 1 + input_.Below(4); i < records; ++i) {
      plan::EvidenceRecord record{};
      record.kind = static_cast<uint32_t>(1 + input_.Below(7));
      record.cause = static_cast<uint32_t>(input_.Below(11));
      record.time_ns = static_cast<int64_t>(input_.TakeNumber());
      record.local_rail = static_cast<uint32_t>(input_.Below(plan::kAttachRailsMax + 1));
      record.share_permille = static_cast<uint32_t>(input_.TakeNumber());
      record.bytes = input_.TakeNumber();
      record.replayed_bytes = input_.TakeNumber();
      record.duration_ns = input_.TakeNumber();
      Put(fuzz::TakeName(&input_, kNames), record.peer_node, sizeof(record.peer_node));
      Put(fuzz::TakeName(&input_, kNames), record.peer_nic, sizeof(record.peer_nic));
      R2CC_CHECK(writer.Put(record));
    }
    std::vector<plan::EvidenceRecord> records;
    reader.Take(static_cast<int>(plan::kRingRecords), &records);
    if (jobs_attached_ > 0) jobs_->Deliver(job, records, input_.TakeNumber());
  }

  // ---- requests ----

  daemon::Caller TakeCaller() {
    daemon::Caller caller{.kind = daemon::Caller::Kind::kLocal};
    if (input_.TakeBool()) caller.via = "n1";
    return caller;
  }
  // Answered once, in time, by what goes over the wire.
  template <typename Reply, typename Begin>
  void Call(Begin begin) {
    int answers = 0;
    begin([&](const absl::StatusOr<Reply>& reply) {
      ++answers;
      if (reply.ok())
        R2CC_CHECK(Reply().ParseFromString(reply->SerializeAsString()));
      else
        R2CC_CHECK(PlainLine(std::string(reply.status().message())));
    });
    Settle();
    if (answers == 0) core_.Advance(kNanosPerSecond);
    R2CC_CHECK(answers == 1);
  }
  void ActOnNic() {
    v1::NicActionRequest request;
    fuzz::Fill(&input_, kNames, &request);
    if (input_.TakeBool()) request.set_node("n0");
    const daemon::Caller caller = TakeCaller();
    Call<v1::NicActionReply>([&](auto answer) { wiring_->backend().Ask(request, caller, answer); });
  }
  void Ask() {
    v1::ExplainNicRequest nic;
    fuzz::Fill(&input_, kNames, &nic);
    v1::ProbePathsRequest paths;
    fuzz::Fill(&input_, kNames, &paths);
    v1::ListNicsRequest nics;
    const daemon::Caller caller = TakeCaller();
    Call<v1::ExplainNicReply>([&](auto answer) { wiring_->backend().Ask(nic, caller, answer); });
    for (const char* own : {"rail0", "rail1", "ib0"}) {
      nic.set_node("n0");
      nic.set_nic(own);
      Call<v1::ExplainNicReply>([&](auto answer) { wiring_->backend().Ask(nic, caller, answer); });
    }
    Call<v1::ProbePathsReply>([&](auto answer) { wiring_->backend().Ask(paths, caller, answer); });
    Call<v1::ListNicsReply>([&](auto answer) { wiring_->backend().Ask(nics, daemon::Caller(), answer); });
    Call<v1::StatusReply>([&](auto answer) { wiring_->backend().Ask(v1::StatusRequest(), daemon::Caller(), answer); });
    Call<v1::ListJobsReply>([&](auto answer) { wiring_->backend().Ask(v1::ListJobsRequest(), daemon::Caller(), answer); });
    Call<v1::Plan>([&](auto answer) { wiring_->backend().Ask(v1::GetPlanRequest(), daemon::Caller(), answer); });
    Call<v1::ExplainPlanReply>([&](auto answer) { wiring_->backend().Ask(v1::ExplainPlanRequest(), daemon::Caller(), answer); });
  }

  // ---- what must hold ----

  void Check() {
    const daemon::Moment now{core_.Now(), 1'700'000'000'000'000'000 + core_.Now()};
    // Another daemon of this release understands what this one says of itself.
    const v1::NodeView own = *wiring_->backend().broadcaster().Get();
    v1::NodeView parsed;
    R2CC_CHECK(parsed.ParseFromString(own.SerializeAsString()));
    const auto state = daemon::FromProto(parsed, now);
    R2CC_CHECK(state.ok() && state->node == "n0" && state->nics.size() == 3);
    // Jobs move traffic at most; they fail nothing.
    if (jobs_alone_)
      for (const health::NicStatus& nic : state->nics) R2CC_CHECK(nic.identity.name == "ib0" || nic.state != health::NicState::kFailed);
    R2CC_CHECK(!page_->plans().empty());
    for (const plan::PlannedNic& nic : page_->plans().back().nics) R2CC_CHECK(nic.weight_permille <= plan::kFullWeightPermille);
    for (auto event = wiring_->backend().events().After(0); event.has_value(); event = wiring_->backend().events().After(event->sequence()))
      R2CC_CHECK(PlainLine(event->message()));
  }

  fuzz::Input input_;
  const bool jobs_alone_;  // nobody but jobs says a word
  const ScopedLogCapture log_{[](Severity, const std::string& line) { R2CC_CHECK(line.find('\n') == std::string::npos); }};
  uint64_t starts_ = 0;
  daemon::JobId jobs_attached_ = 0;
  std::string last_ping_;
  health::FakeDatagrams others_{&net_};
  std::vector<std::unique_ptr<health::RailSocket>> sockets_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Fuzzed(fuzz::Input(data, size)).Run();
  return 0;
}
