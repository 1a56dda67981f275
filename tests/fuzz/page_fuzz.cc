// The page, written by somebody who knows its layout and means no good: what a reader believes is a plan, or it keeps the one it has.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>

#include "base/core/check.h"
#include "base/core/hash.h"
#include "plan/page/page.h"
#include "plan/page/page_layout.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc::plan;  // NOLINT

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | 0x10 /* F_SEAL_FUTURE_WRITE */;

// Sealed as the daemon's; the mapping made before stays writable.
class Memory {
 public:
  Memory(size_t bytes, int seals) : fd_(memfd_create("page", MFD_ALLOW_SEALING | MFD_CLOEXEC)), bytes_(bytes) {
    R2CC_CHECK(ftruncate(fd_, static_cast<off_t>(bytes)) == 0);
    if (bytes > 0) data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    R2CC_CHECK(data_ != MAP_FAILED && fcntl(fd_, F_ADD_SEALS, seals) == 0);
  }
  ~Memory() {
    if (bytes_ > 0) munmap(data_, bytes_);
    close(fd_);
  }
  void* data() { return data_; }
  int Dup() const { return dup(fd_); }

 private:
  const int fd_;
  const size_t bytes_;
  void* data_ = nullptr;
};

void CheckCopy(const PageCopy& copy) {
  for (size_t i = 0; i < copy.entries.size(); ++i) {
    const PageEntry& entry = copy.entries[i];
    R2CC_CHECK(entry.weight_permille <= kFullWeightPermille && entry.state <= static_cast<uint8_t>(PlannedState::kDrained));
    R2CC_CHECK(copy.Find(entry.node_hash, entry.nic_hash) == &entry);
    if (i == 0) continue;
    const PageEntry& before = copy.entries[i - 1];
    R2CC_CHECK(std::tie(before.node_hash, before.nic_hash) < std::tie(entry.node_hash, entry.nic_hash));
  }
}

// Any size, seals and header.
void Open(r2cc::fuzz::Input input) {
  const size_t sizes[] = {0, 15, 16, 64, kPageBytes - 1, kPageBytes, kPageBytes + 1};
  const int seals[] = {0, kSeals, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, F_SEAL_GROW, kSeals & ~F_SEAL_SHRINK};
  const size_t bytes = sizes[input.Below(std::size(sizes))];
  Memory memory(bytes, seals[input.Below(std::size(seals))]);
  const std::span<const uint8_t> head = input.TakeBytes(std::min<size_t>(bytes, 512));
  if (!head.empty()) std::memcpy(memory.data(), head.data(), head.size());
  std::string error;
  const auto reader = PageReader::Open(memory.Dup(), &error);
  R2CC_CHECK((reader == nullptr) != error.empty() && error.find('\n') == std::string::npos);
  if (reader == nullptr) return;
  reader->Refresh();
  CheckCopy(reader->copy());
}

// Any body, again and again under one reader.
void Read(r2cc::fuzz::Input input) {
  static Memory& memory = *new Memory(kPageBytes, kSeals);
  auto* page = static_cast<PageLayout*>(memory.data());
  std::memset(page, 0, 4096);
  page->magic = kPageMagic;
  page->version = kPageVersionLeast;
  page->newest = kPageVersion;
  std::string error;
  const auto reader = PageReader::Open(memory.Dup(), &error);
  R2CC_CHECK(reader != nullptr);
  r2cc::Epoch last;
  for (int round = 0; round < 8 && !input.empty(); ++round) {
    const uint8_t flags = input.Take<uint8_t>();
    page->sequence = (flags & 1) != 0 ? input.TakeNumber() : page->sequence + 2;
    page->heartbeat_ns = input.TakeNumber();
    page->body[kPageBodyIncarnation] = input.TakeNumber();
    page->body[kPageBodyDisplaced] = input.TakeNumber();
    page->body[kPageBodyEpochCounter] = input.TakeNumber();
    const uint64_t count = input.TakeNumber();
    page->body[kPageBodyEntryCount] = count;
    const size_t words = std::min<uint64_t>(count, 16) * kPageEntryWords;
    for (size_t i = 0; i < words; ++i) page->body[kPageBodyEntries + i] = input.TakeNumber();
    // An honest checksum as often as not.
    if ((flags & 2) == 0 && count <= kPageEntriesMax)
      page->checksum = r2cc::Crc32c(page->body, (kPageBodyEntries + count * kPageEntryWords) * sizeof(uint64_t));
    else
      page->checksum = input.TakeNumber();
    const uint64_t refusals = reader->refusals();
    const PageReader::Read result = reader->Refresh();
    R2CC_CHECK((result == PageReader::Read::kRefused) == (reader->refusals() == refusals + 1));
    R2CC_CHECK((result == PageReader::Read::kNew) == (last != reader->copy().epoch));
    R2CC_CHECK(last == r2cc::Epoch{} || last == reader->copy().epoch || reader->copy().epoch.LaterThan(last));
    last = reader->copy().epoch;
    CheckCopy(reader->copy());
    const auto now = static_cast<r2cc::Nanos>(input.TakeNumber());
    const bool stale = reader->Stale(now);
    page->end_lease_until_ns = input.TakeNumber();
    // A last word makes nothing stale, and one that is over, or lies too far ahead, saves nothing.
    R2CC_CHECK(stale || !reader->Stale(now));
    const uint64_t ahead = page->end_lease_until_ns - static_cast<uint64_t>(now);
    if (stale && ahead > static_cast<uint64_t>(kPageEndLease)) R2CC_CHECK(reader->Stale(now));
    page->end_lease_until_ns = 0;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  r2cc::fuzz::Input input(data, size);
  if (input.Below(4) == 0)
    Open(input);
  else
    Read(input);
  return 0;
}
