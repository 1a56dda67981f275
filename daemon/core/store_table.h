// Holds the embedded store's contents: keys with leases, in memory. Policy only; time is an argument.
#ifndef R2CC_DAEMON_CORE_STORE_TABLE_H_
#define R2CC_DAEMON_CORE_STORE_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/core/clock.h"

namespace r2cc::daemon {

struct StoreChange {
  std::string key;
  std::string value;
  bool deleted = false;
  uint64_t revision = 0;

  friend bool operator==(const StoreChange&, const StoreChange&) = default;
};

// One thread at a time.
class StoreTable {
 public:
  static constexpr size_t kKeyBytesMax = 512;
  static constexpr size_t kValueBytesMax = 128 << 10;  // a view with all its pairs has 30 KiB
  static constexpr size_t kEntriesMax = 65'536;
  static constexpr int64_t kLeaseMsMax = 24 * 3600 * int64_t{1000};

  // Sets `key`. lease_ms 0: without end; otherwise the entry goes unless it is put again within this time. Returns the change for watchers,
  // or none if the value is the same: then only its lease is new. RESOURCE_EXHAUSTED or INVALID_ARGUMENT, with nothing changed, beyond the
  // limits.
  absl::StatusOr<std::optional<StoreChange>> Put(const std::string& key, const std::string& value, int64_t lease_ms, Nanos now);

  // Removes entries that have expired at `now`; returns the changes for watchers.
  std::vector<StoreChange> Expire(Nanos now);

  // Every present entry whose key begins with `prefix`, in key order.
  std::vector<StoreChange> Snapshot(const std::string& prefix) const;

  // The present value of `key`, as the change by which it came or went.
  StoreChange Get(const std::string& key) const;

  uint64_t revision() const { return revision_; }

 private:
  struct Entry {
    std::string value;
    uint64_t revision = 0;
    std::optional<Nanos> expires;
  };
  std::map<std::string, Entry> entries_;
  uint64_t revision_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_STORE_TABLE_H_
