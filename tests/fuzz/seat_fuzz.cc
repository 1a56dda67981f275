// What ranks report to each other for a seat: frames of the roll call, the note in a communicator's ID, the vector of the agreement.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/core/check.h"
#include "nccl/record.h"
#include "nccl/roll.h"
#include "nccl/shadow_machine.h"
#include "nccl/unique_id.h"
#include "tests/fuzz/input.h"

namespace {

using namespace r2cc;        // NOLINT
using namespace r2cc::nccl;  // NOLINT

using Kind = Verdict::Kind;

// Raw bytes, or a frame with any values in it.
std::vector<std::byte> TakeRequest(fuzz::Input* input) {
  if (input->TakeBool()) {
    const auto raw = std::as_bytes(input->TakeBytes(input->Below(2 * sizeof(RollRequest))));
    return {raw.begin(), raw.end()};
  }
  const RollRequest request{.wants = static_cast<uint32_t>(input->Below(3)),
                            .key = 1,
                            .rank = static_cast<uint32_t>(input->TakeNumber()),
                            .ranks = static_cast<uint32_t>(input->TakeNumber()),
                            .every = static_cast<uint32_t>(input->Below(2)),
                            .release = input->Below(2)};
  const auto bytes = std::as_bytes(std::span(&request, 1));
  return {bytes.begin(), bytes.end()};
}

void CheckRoll(fuzz::Input* input) {
  Roll roll;
  Verdict last;
  Nanos now = 0;
  uint32_t ranks = 0;
  std::set<uint32_t> here;
  std::set<std::pair<uint32_t, uint64_t>> settings;
  while (!input->empty()) {
    now += static_cast<Nanos>(input->Below(4)) * kRollGrace / 2;
    const auto request = ParseRollRequest(TakeRequest(input));
    if (!request.has_value()) continue;
    R2CC_CHECK(request->wants <= 1);
    const bool fits =
        request->ranks > 0 && request->ranks <= kRollRanksMax && request->rank < request->ranks && (ranks == 0 || ranks == request->ranks);
    R2CC_CHECK(roll.CheckIn({request->rank, request->ranks, request->every, request->release}) == fits);
    if (!fits) continue;
    ranks = request->ranks;
    here.insert(request->rank);
    settings.emplace(request->every, request->release);
    if (request->wants == 1) roll.Want(now);
    const Verdict verdict = roll.Decide(now);
    // It never changes, and it is true when it is made.
    R2CC_CHECK(last.kind == Kind::kNone || verdict == last);
    if (verdict.kind != Kind::kNone && last.kind == Kind::kNone) {
      R2CC_CHECK(here.count(verdict.speaker) == 1);
      R2CC_CHECK((verdict.kind == Kind::kDiffers) == (settings.size() > 1));
      R2CC_CHECK(verdict.kind != Kind::kAll || here.size() == ranks);
      R2CC_CHECK(verdict.kind != Kind::kMissing || (verdict.rank < ranks && here.count(verdict.rank) == 0));
      R2CC_CHECK(verdict.kind != Kind::kNoRoom);
    }
    last = verdict;
  }
}

void CheckReply(fuzz::Input* input) {
  RollReply reply;
  const auto bytes = input->TakeBytes(sizeof(reply) + input->Below(2));
  const auto verdict = ParseRollReply(std::as_bytes(bytes));
  if (!verdict.has_value()) return;
  R2CC_CHECK(bytes.size() == sizeof(reply) && verdict->kind <= Kind::kNoRoom);
  reply = {.kind = static_cast<uint32_t>(verdict->kind), .rank = verdict->rank, .speaker = verdict->speaker};
  R2CC_CHECK(std::memcmp(&reply, bytes.data(), sizeof(reply)) == 0);
}

void CheckNote(fuzz::Input* input) {
  UniqueId id{};
  const auto bytes = input->TakeBytes(sizeof(id));
  if (!bytes.empty()) std::memcpy(id.bytes, bytes.data(), bytes.size());
  if (auto meeting = MeetingAddress(id); meeting.has_value() && meeting->bytes > sizeof(meeting->address)) R2CC_CHECK(false);
  const auto note = ReadNote(id);
  if (!note.has_value()) return;
  R2CC_CHECK(note->address.ss_family == AF_INET || note->address.ss_family == AF_INET6);
  UniqueId other{};
  R2CC_CHECK(WriteNote(*note, &other));
  const auto again = ReadNote(other);
  R2CC_CHECK(again.has_value() && again->bytes == note->bytes && again->nonce == note->nonce && again->key == note->key);
  R2CC_CHECK(std::memcmp(&again->address, &note->address, note->bytes) == 0);
}

// All ranks read the same vectors, so whatever is in them, two ranks do the same.
void CheckVectors(fuzz::Input* input) {
  const size_t ranks = 1 + input->Below(16);
  ShadowMachine one;
  ShadowMachine other;
  while (!input->empty()) {
    std::vector<uint32_t> words(ranks * kRecordWords, UINT32_MAX);
    for (size_t rank = 0; rank < ranks; ++rank) {
      const std::span<uint32_t> own = std::span(words).subspan(rank * kRecordWords, kRecordWords);
      if (input->Below(8) == 0) {
        for (uint32_t& word : own) word = static_cast<uint32_t>(input->TakeNumber());
        continue;
      }
      Encode({.node_key = input->Below(8),
              .kept_permille = static_cast<uint32_t>(input->TakeNumber()),
              .rails = static_cast<uint32_t>(input->TakeNumber()),
              .free_mib = static_cast<uint32_t>(input->TakeNumber()),
              .child = input->TakeBool() ? one.child() : static_cast<uint32_t>(input->TakeNumber()),
              .able = input->Below(8) != 0,
              .node_mbps = static_cast<uint32_t>(input->TakeNumber()),
              .offers_collnet = input->TakeBool(),
              .collnet_min_bytes = input->TakeNumber()},
             0, own);
    }
    const Vector vector = Decode(words, one.child());
    if (vector.problem.empty()) {
      R2CC_CHECK(vector.node_of.size() == ranks);
      for (const uint32_t node : vector.node_of) R2CC_CHECK(node < vector.nodes.kept_permille.size());
      for (const uint32_t kept : vector.nodes.kept_permille) R2CC_CHECK(kept <= 1000);
    }
    R2CC_CHECK(one.Step(vector) == other.Step(vector) && one.state() == other.state() && one.wanted() == other.wanted());
    if (!one.is_switched()) continue;
    R2CC_CHECK(!one.wanted().order.empty());
    std::set<uint32_t> order(one.wanted().order.begin(), one.wanted().order.end());
    R2CC_CHECK(order.size() == one.wanted().order.size() && *order.rbegin() + 1 == order.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  switch (input.Below(4)) {
    case 0: CheckRoll(&input); break;
    case 1: CheckReply(&input); break;
    case 2: CheckNote(&input); break;
    case 3: CheckVectors(&input); break;
  }
  return 0;
}
