#include "daemon/core/store_table.h"

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {

absl::StatusOr<std::optional<StoreChange>> StoreTable::Put(const std::string& key, const std::string& value, int64_t lease_ms, Nanos now) {
  if (key.empty() || key.size() > kKeyBytesMax) return absl::InvalidArgumentError(absl::StrCat("a key has 1 to ", kKeyBytesMax, " bytes"));
  if (value.size() > kValueBytesMax) return absl::InvalidArgumentError(absl::StrCat("a value has at most ", kValueBytesMax, " bytes"));
  if (lease_ms < 0 || lease_ms > kLeaseMsMax) return absl::InvalidArgumentError(absl::StrCat("lease_ms is from 0 to ", kLeaseMsMax));
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() >= kEntriesMax) return absl::ResourceExhaustedError(absl::StrCat("the store holds ", kEntriesMax, " keys already"));
    found = entries_.emplace(key, Entry{}).first;
  }
  Entry& entry = found->second;
  entry.expires = lease_ms == 0 ? std::nullopt : std::optional<Nanos>(now + lease_ms * kNanosPerMs);
  if (entry.revision != 0 && entry.value == value) return std::optional<StoreChange>();
  entry.value = value;
  entry.revision = ++revision_;
  return std::optional<StoreChange>(StoreChange{key, value, false, entry.revision});
}

std::vector<StoreChange> StoreTable::Expire(Nanos now) {
  std::vector<StoreChange> changes;
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (it->second.expires.has_value() && *it->second.expires <= now) {
      changes.push_back({it->first, "", true, ++revision_});
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  return changes;
}

StoreChange StoreTable::Get(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? StoreChange{key, "", true, revision_}
                                 : StoreChange{key, found->second.value, false, found->second.revision};
}

std::vector<StoreChange> StoreTable::Snapshot(const std::string& prefix) const {
  std::vector<StoreChange> entries;
  for (auto it = entries_.lower_bound(prefix); it != entries_.end() && it->first.compare(0, prefix.size(), prefix) == 0; ++it)
    entries.push_back({it->first, it->second.value, false, it->second.revision});
  return entries;
}

}  // namespace r2cc::daemon
