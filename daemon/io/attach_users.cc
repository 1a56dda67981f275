#include "daemon/io/attach_users.h"

#include <utility>

namespace r2cc::daemon {
namespace {

// Users whose last refusal is remembered.
constexpr size_t kToldMax = 1024;

}  // namespace

bool AttachUsers::Connect(uint32_t uid) {
  Connections& connections = connections_[uid];
  if (connections.greetings >= kGreetingsMax) return false;
  ++connections.greetings;
  return true;
}

bool AttachUsers::MayAttach(uint32_t uid) const { return connections_.at(uid).attached < kProcessesMax; }

void AttachUsers::Attach(uint32_t uid) {
  Connections& connections = connections_.at(uid);
  --connections.greetings;
  ++connections.attached;
}

void AttachUsers::Leave(uint32_t uid, bool attached) {
  const auto found = connections_.find(uid);
  --(attached ? found->second.attached : found->second.greetings);
  if (found->second.attached + found->second.greetings == 0) connections_.erase(found);
}

int AttachUsers::TakeRecords(uint32_t uid, int most, Nanos now) {
  if (records_.size() >= kToldMax && !records_.contains(uid))
    std::erase_if(records_, [&](const auto& entry) { return !connections_.contains(entry.first); });
  return records_.try_emplace(uid, kRecordsPerSecond, kRecordsBurst).first->second.TakeUpTo(most, now);
}

std::optional<uint64_t> AttachUsers::Refuse(uint32_t uid, Nanos now) {
  ++refused_;
  if (told_.size() >= kToldMax && !told_.contains(uid)) told_.clear();
  const auto [told, fresh] = told_.try_emplace(uid);
  if (!fresh && now - told->second.when < kLineInterval) {
    ++told->second.untold;
    return std::nullopt;
  }
  told->second.when = now;
  return std::exchange(told->second.untold, 0);
}

}  // namespace r2cc::daemon
