// The evidence ring: a producer that writes anything anywhere in it, and a consumer that lies about what it took.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/core/check.h"
#include "plan/page/attach.h"
#include "plan/page/ring.h"
#include "plan/page/ring_layout.h"
#include "plan/page/text.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc::plan;  // NOLINT

void CheckRecord(const EvidenceRecord& record) {
  R2CC_CHECK(record.time_ns >= 0 && record.local_rail < kAttachRailsMax);
  R2CC_CHECK(SoundText(record.peer_node) && SoundText(record.peer_nic));
  R2CC_CHECK(std::string(CauseName(static_cast<EvidenceCause>(record.cause))) != "unknown");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  r2cc::fuzz::Input input(data, size);
  std::string error;
  const std::unique_ptr<EvidenceRingReader> reader = EvidenceRingReader::Create(&error);
  R2CC_CHECK(reader != nullptr);
  const std::unique_ptr<EvidenceRingWriter> writer = EvidenceRingWriter::Open(dup(reader->fd()), &error);
  R2CC_CHECK(writer != nullptr);
  void* memory = mmap(nullptr, sizeof(RingLayout), PROT_READ | PROT_WRITE, MAP_SHARED, reader->fd(), 0);
  R2CC_CHECK(memory != MAP_FAILED);
  auto* ring = static_cast<RingLayout*>(memory);
  for (int step = 0; step < 64 && !input.empty(); ++step) {
    switch (input.Below(7)) {
      case 0: ring->put = input.TakeNumber(); break;
      case 1: ring->put += input.Take<uint8_t>(); break;
      case 2: ring->taken = input.TakeNumber(); break;
      case 3: {  // a record as bytes
        const size_t slot = input.Take<uint16_t>() % kRingRecords;
        const std::span<const uint8_t> bytes = input.TakeBytes(sizeof(EvidenceRecord));
        if (!bytes.empty()) std::memcpy(ring->records[slot], bytes.data(), bytes.size());
        break;
      }
      case 4: {
        EvidenceRecord record{};
        record.kind = input.Take<uint8_t>();
        record.cause = input.Take<uint8_t>();
        record.time_ns = static_cast<int64_t>(input.TakeNumber());
        record.local_rail = input.Take<uint8_t>();
        const std::string node = input.TakeString(input.Below(sizeof(record.peer_node) + 1));
        std::memcpy(record.peer_node, node.data(), node.size());
        writer->Put(record);
        break;
      }
      case 5: ring->dropped = input.TakeNumber(); break;
      default: {
        std::vector<EvidenceRecord> records;
        const int most = static_cast<int>(input.Below(64));
        const int taken = reader->Take(most, &records);
        R2CC_CHECK(taken <= most && static_cast<size_t>(taken) >= records.size());
        for (const EvidenceRecord& record : records) CheckRecord(record);
        (void)reader->dropped();
        break;
      }
    }
  }
  munmap(memory, sizeof(RingLayout));
  return 0;
}
