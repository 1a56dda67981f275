#include "nccl/profiler/operation_log.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace r2cc::profiler {
namespace {

// As records of the ring have to be: printable ASCII.
void CopyClean(const char* text, std::span<char> out) {
  const size_t length = strnlen(text, out.size() - 1);
  for (size_t i = 0; i < length; ++i) out[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
  out[length] = '\0';
}

}  // namespace

uint64_t OperationLog::Open(Communicator communicator) {
  communicators_[++opened_] = std::move(communicator);
  return opened_;
}

void OperationLog::Close(uint64_t communicator) { communicators_.erase(communicator); }

OperationLog::Communicator* OperationLog::Find(uint64_t communicator) {
  const auto found = communicators_.find(communicator);
  return found == communicators_.end() ? nullptr : &found->second;
}

OperationId OperationLog::Begin(uint64_t communicator, const char* function, uint32_t number, int peer) {
  Slot& slot = slots_[next_ % kMost];
  slot = {.id = next_, .communicator = communicator, .number = number, .peer = peer};
  if (function != nullptr) std::memcpy(slot.function, function, strnlen(function, sizeof(slot.function) - 1));
  if (++next_ == 0) ++next_;
  return slot.id;
}

OperationLog::Slot* OperationLog::At(OperationId operation) {
  Slot& slot = slots_[operation % kMost];
  return operation != 0 && slot.id == operation ? &slot : nullptr;
}

bool OperationLog::BeginPart(OperationId operation, Nanos now) {
  Slot* const slot = At(operation);
  if (slot == nullptr) return false;
  if (slot->begun == 0) slot->begun = now;
  ++slot->parts;
  return true;
}

void OperationLog::EndPart(OperationId operation, Nanos now) {
  Slot* const slot = At(operation);
  if (slot == nullptr || slot->parts == 0) return;
  --slot->parts;
  slot->ended = now;
}

size_t OperationLog::HeldOperations(uint64_t id, Nanos begun, Nanos ended, std::span<abi::HeldOperationV1> held) const {
  struct Found {
    const Slot* slot;
    const Communicator* communicator;
    Nanos time;
  };
  std::vector<Found> found;
  for (const Slot& slot : slots_) {
    if (slot.begun == 0) continue;
    const Nanos until = slot.parts > 0 ? ended : std::min(ended, slot.ended);
    const Nanos time = until - std::max(begun, slot.begun);
    if (time <= 0 || time < (ended - begun) / 2) continue;
    if (const auto of = communicators_.find(slot.communicator); of != communicators_.end()) found.push_back({&slot, &of->second, time});
  }
  const auto is_its = [id](const Found& one) { return one.communicator->id == id; };
  if (id != 0 && std::any_of(found.begin(), found.end(), is_its)) std::erase_if(found, [&](const Found& one) { return !is_its(one); });
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.time != b.time ? a.time > b.time : a.slot->id < b.slot->id; });
  const size_t count = std::min(found.size(), held.size());
  for (size_t i = 0; i < count; ++i) {
    const auto& [slot, communicator, time] = found[i];
    held[i] = {.communicator = communicator->id,
               .held_ns = time,
               .rank = communicator->rank,
               .ranks = communicator->ranks,
               .number = slot->number,
               .reserved = 0,
               .function = {},
               .communicator_name = {}};
    std::string function = slot->function[0] == '\0' ? "operation" : slot->function;
    if (slot->peer >= 0) function += (function == "Recv" ? " from " : " to ") + std::to_string(slot->peer);
    CopyClean(function.c_str(), held[i].function);
    CopyClean(communicator->name.c_str(), held[i].communicator_name);
  }
  return count;
}

}  // namespace r2cc::profiler
