// Writes what this tree's release puts on the wire, into shared memory and into files: a file each, in the directory that is named. Run in
// the tree of a release that later ones have to understand; its files are golden/RELEASE from then on.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "base/core/check.h"
#include "plan/page/page.h"
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
  for (const auto& [name, frame] : Frames()) maker.Write(name, net::Encode(frame, kTag));
  uint8_t bulk[net::kBulkHeaderBytes];
  net::Encode(Bulk(), kTag, bulk);
  maker.Write("bulk", bulk, sizeof(bulk));
  const net::Handle handle = HandleOf(kOldWire, kOldWire);
  maker.Write("handle", &handle, sizeof(handle));
}

void MakeShared(const Maker& maker) {
  plan::AttachRequest request{};
  FillRequest(&request);
  maker.Write("attach_request", &request, sizeof(request));
  plan::AttachReply reply{};
  FillReply(&reply);
  maker.Write("attach_reply", &reply, sizeof(reply));
  std::string error;
  const auto page = plan::PageWriter::Create(&error);
  R2CC_CHECK(page != nullptr && page->Publish(PlanOnPage(), kHeartbeat, &error));
  void* const memory = mmap(nullptr, plan::kPageBytes, PROT_READ, MAP_SHARED, page->fd(), 0);
  R2CC_CHECK(memory != MAP_FAILED);
  maker.Write("page", memory, kPageHeadBytes);
}

void MakeDaemon(const Maker& maker) {
  maker.Write("view", View().SerializeAsString());
  maker.Write("state", daemon::EncodeState(State()));
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
  r2cc::golden::MakeShared(maker);
  r2cc::golden::MakeDaemon(maker);
  return 0;
}
