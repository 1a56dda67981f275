// Writes what this tree's release puts on the wire, into shared memory and into files: a file each, in the directory that is named. Run in
// the tree of a release that later ones have to understand; its files are golden/RELEASE from then on.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "base/core/check.h"
#include "plan/page/page.h"
#include "plan/page/ring.h"
#include "tests/upgrade/golden_transport_values.h"
#include "tests/upgrade/golden_values.h"

namespace r2cc::golden {
namespace {

class Maker {
 public:
  explicit Maker(std::string folder) : folder_(std::move(folder)) {}

  void Write(const std::string& name, const void* data, size_t bytes) const {
    std::ofstream file(folder_ + "/" + name, std::ios::binary);
    file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    R2CC_CHECK(file.good());
  }
  void Write(const std::string& name, const net::Bytes& bytes) const { Write(name, bytes.data(), bytes.size()); }
  void Write(const std::string& name, const std::string& bytes) const { Write(name, bytes.data(), bytes.size()); }

 private:
  const std::string folder_;
};

void MakeWire(const Maker& maker) {
  maker.Write("hello_oob", net::Encode(OobHello()));
  maker.Write("hello_link", net::Encode(LinkHello()));
  maker.Write("hello_reply", net::Encode(Reply()));
  maker.Write("hello_refusal", net::Encode(Refusal()));
  maker.Write("hello_version_refusal", net::Encode(VersionRefusal()));
  for (const auto& [name, frame] : Frames()) maker.Write(name, net::Encode(frame, kTag));
  uint8_t bulk[net::kBulkHeaderBytes];
  net::Encode(Bulk(), kTag, bulk);
  maker.Write("bulk", bulk, sizeof(bulk));
  net::Encode(BulkProof(), kTag, bulk);
  maker.Write("bulk_proof", bulk, sizeof(bulk));
  const net::Handle handle = HandleOf(kOldWireLeast, kOldWire);
  maker.Write("handle", &handle, sizeof(handle));
}

void MakeTransports(const Maker& maker) {
  maker.Write("tcp_rail", net::RailEndpointOf(TcpAddress()));
  maker.Write("tcp_path", net::PathEndpointOf(kTcpPath));
  maker.Write("verbs_rail", net::verbs::Encode(VerbsAddress()));
  maker.Write("verbs_offer", net::verbs::Encode(VerbsOffer()));
  maker.Write("verbs_key", net::verbs::EncodeKey(kVerbsKey));
  const uint32_t immediate = net::verbs::ImmediateOf(kVerbsMark);
  maker.Write("verbs_immediate", &immediate, sizeof(immediate));
  const auto tail = net::verbs::Encode(kVerbsTail, kVerbsMark.ticket, kTag);
  maker.Write("verbs_tail", tail.data(), tail.size());
  for (const auto& [name, record] : VerbsRecords()) {
    const net::verbs::RecordData data = net::verbs::Encode(record, kTag);
    maker.Write(name, data.data(), data.size());
  }
}

void MakeCollectives(const Maker& maker) {
  const auto write = [&maker](const std::string& name, const collnet::Bytes& bytes) { maker.Write(name, bytes.data(), bytes.size()); };
  write("group_offer", collnet::Encode(GroupOffer()));
  write("group_greeting", collnet::Encode(GroupGreeting()));
  for (const auto& [name, message] : GroupMessages()) write(name, collnet::Encode(message));
}

void WriteMemory(const Maker& maker, const std::string& name, int fd, size_t bytes) {
  std::string head(bytes, '\0');
  R2CC_CHECK(pread(fd, head.data(), head.size(), 0) == static_cast<ssize_t>(bytes));
  maker.Write(name, head);
}

void MakeShared(const Maker& maker) {
  plan::AttachRequest request{};
  FillRequest(&request);
  maker.Write("attach_request", &request, sizeof(request));
  plan::AttachReply reply{};
  FillReply(&reply);
  maker.Write("attach_reply", &reply, sizeof(reply));
  plan::AttachReply refusal{};
  FillRefusal(&refusal);
  maker.Write("attach_refusal", &refusal, sizeof(refusal));
  std::string error;
  const auto page = plan::PageWriter::Create(&error);
  R2CC_CHECK(page != nullptr && page->Publish(PlanOnPage(), kHeartbeat, &error));
  WriteMemory(maker, "page", page->fd(), kPageHeadBytes);
  page->EndOnPurpose(kHeartbeat);
  WriteMemory(maker, "page_ended", page->fd(), kPageHeadBytes);
  // The ring as r2ccd makes it, then with what a plugin writes.
  const auto ring = plan::EvidenceRingReader::Create(&error);
  R2CC_CHECK(ring != nullptr);
  WriteMemory(maker, "ring", ring->fd(), kRingHeadBytes);
  const auto writer = plan::EvidenceRingWriter::Open(dup(ring->fd()), &error);
  R2CC_CHECK(writer != nullptr);
  for (const plan::EvidenceRecord& record : Evidence()) R2CC_CHECK(writer->Put(record));
  WriteMemory(maker, "ring_filled", ring->fd(), kRingHeadBytes);
}

void MakeDaemon(const Maker& maker) {
  maker.Write("view", View().SerializeAsString());
  maker.Write("state", daemon::EncodeState(State()));
  const health::ProbeMacKey key = ProbeKey();
  maker.Write("probe_key", key.data(), key.size());
  for (const auto& [name, kind] : {std::pair("probe_ping", health::RailProbeKind::kPing), {"probe_pong", health::RailProbeKind::kPong}}) {
    const health::RailProbeBytes bytes = health::EncodeRailProbe(ProbeOf(kind), key);
    maker.Write(name, bytes.data(), bytes.size());
  }
  maker.Write("rdma_end", health::EncodeRdmaEnd(RdmaEndOfAPair()));
}

}  // namespace
}  // namespace r2cc::golden

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "make_golden: name the directory that the files go to\n");
    return 2;
  }
  const r2cc::golden::Maker maker(argv[1]);
  r2cc::golden::MakeWire(maker);
  r2cc::golden::MakeTransports(maker);
  r2cc::golden::MakeCollectives(maker);
  r2cc::golden::MakeShared(maker);
  r2cc::golden::MakeDaemon(maker);
  return 0;
}
