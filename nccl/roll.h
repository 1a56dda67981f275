// Decides whether all ranks of one communicator have this library, in the same release and with the same settings. The process that made
// the communicator's ID decides for all ranks, once, so all of them learn the same. Pure; time is an argument.
//
// A rank checks in before it begins the communicator. NCCL lets no rank begin without all others, so when a rank has begun to reduce, all
// ranks that have the library have checked in, or will within kRollGrace.
#ifndef R2CC_NCCL_ROLL_H_
#define R2CC_NCCL_ROLL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/core/clock.h"

namespace r2cc::nccl {

// From the first rank that waits for the verdict until a rank that has not checked in counts as one without the library. A frame takes
// microseconds; a process that is busy may read it late.
constexpr Nanos kRollGrace = 2 * kNanosPerSecond;
constexpr uint32_t kRollRanksMax = 1 << 20;

// A rank's report about itself.
struct Attendee {
  uint32_t rank = 0;
  uint32_t ranks = 0;
  uint32_t every = 0;    // R2CC_SEAT_EVERY
  uint64_t release = 0;  // a hash: what decides must be the same code on all ranks
};

struct Verdict {
  // kNoRoom: the process has decided for as many communicators as it remembers.
  enum class Kind : uint32_t { kNone, kAll, kMissing, kDiffers, kNoRoom };
  Kind kind = Kind::kNone;
  uint32_t rank = 0;     // the first one that is missing, or differs
  uint32_t speaker = 0;  // the first one that is there: it logs
  friend bool operator==(const Verdict&, const Verdict&) = default;
};

class Roll {
 public:
  // False: it cannot belong to this communicator. The same rank may check in again.
  bool CheckIn(const Attendee& attendee);
  // A rank that has checked in waits for the verdict.
  void Want(Nanos now);
  // It never changes once its kind is another than kNone.
  Verdict Decide(Nanos now);

 private:
  std::vector<bool> here_;  // by rank; empty: nobody has checked in
  uint32_t count_ = 0;
  Attendee first_;
  std::optional<uint32_t> differs_;
  std::optional<Nanos> wanted_;
  Verdict verdict_;
};

// Frames of a roll call, in the byte order of the machine: x86-64 and arm64 have the same.
struct RollRequest {
  static constexpr uint32_t kMagic = 0x31524352;  // "RCR1"
  uint32_t magic = kMagic;
  uint32_t wants = 0;  // 1: the rank waits for the verdict
  uint64_t nonce = 0;  // of the process that is asked
  uint64_t key = 0;    // of the communicator
  uint32_t rank = 0;
  uint32_t ranks = 0;
  uint32_t every = 0;
  uint32_t zero = 0;
  uint64_t release = 0;
};
static_assert(sizeof(RollRequest) == 48);

struct RollReply {
  static constexpr uint32_t kMagic = 0x31524356;  // "VCR1"
  uint32_t magic = kMagic;
  uint32_t kind = 0;
  uint32_t rank = 0;
  uint32_t speaker = 0;
};
static_assert(sizeof(RollReply) == 16);

// Null where the bytes are no such frame.
std::optional<RollRequest> ParseRollRequest(std::span<const std::byte> bytes);
std::optional<Verdict> ParseRollReply(std::span<const std::byte> bytes);

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_ROLL_H_
