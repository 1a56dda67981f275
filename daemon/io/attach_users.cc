#include "daemon/io/attach_users.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
namespace {

// Users whose last refusal is remembered.
constexpr size_t kUsersMax = 1024;

}  // namespace

bool AttachUsers::Connect(uint32_t uid) {
  const auto found = greetings_.find(uid);
  const size_t count = found == greetings_.end() ? 0 : found->second;
  if (count >= kGreetingsMax || !HasRoom(uid != 0 && count > 0)) return false;
  ++greetings_[uid];
  ++places_;
  return true;
}

void AttachUsers::Disconnect(uint32_t uid) {
  const auto found = greetings_.find(uid);
  if (--found->second == 0) greetings_.erase(found);
  --places_;
}

std::string AttachUsers::WhyNotAttach(const std::string& share) const {
  const auto found = attached_.find(share);
  const size_t count = found == attached_.end() ? 0 : found->second;
  if (count >= kProcessesMax) return absl::StrCat(share, " has ", kProcessesMax, " processes attached, the most for one user or container");
  // Its own connection has a place already.
  if (share != ShareOf(0) && count > 0 && places_ > kPlacesMax - kReserve)
    return absl::StrCat("the last ", kReserve, " places are reserved for root and for users without a connection");
  return "";
}

void AttachUsers::Attach(uint32_t uid, const std::string& share) {
  Disconnect(uid);
  ++attached_[share];
  ++places_;
}

void AttachUsers::Leave(const std::string& share) {
  const auto found = attached_.find(share);
  if (--found->second == 0) attached_.erase(found);
  --places_;
}

int AttachUsers::TakeRecords(const std::string& share, int most, Nanos now) {
  if (records_.size() >= kUsersMax && !records_.contains(share))
    std::erase_if(records_, [&](const auto& entry) { return !attached_.contains(entry.first); });
  return records_.try_emplace(share, kRecordsPerSecond, kRecordsBurst).first->second.TakeUpTo(most, now);
}

void AttachUsers::GiveBack(const std::string& share, int records) {
  if (const auto found = records_.find(share); found != records_.end()) found->second.GiveBack(records);
}

std::optional<uint64_t> AttachUsers::Refuse(uint32_t uid, Nanos now) {
  ++refused_;
  if (logged_.size() >= kUsersMax && !logged_.contains(uid)) logged_.clear();
  const auto [logged, fresh] = logged_.try_emplace(uid);
  if ((!fresh && now - logged->second.when < kLineInterval) || !lines_.Take(now)) {
    ++logged->second.suppressed;
    return std::nullopt;
  }
  logged->second.when = now;
  return std::exchange(logged->second.suppressed, 0);
}

}  // namespace r2cc::daemon
