#include "client/commands/events_sought.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/event_kinds.h"
#include "client/commands/values.h"

namespace r2cc::client {

std::string EventKindsText() {
  std::string text;
  for (const std::string_view kind : kEventKinds) absl::StrAppend(&text, text.empty() ? "" : ", ", std::string(kind));
  return text;
}

absl::StatusOr<v1::EventsRequest> MakeEventsRequest(const EventsSought& sought, absl::Time now, absl::TimeZone zone) {
  v1::EventsRequest list;
  list.set_follow(sought.follow);
  uint64_t after = 0;
  if (!sought.after.empty() && !absl::SimpleAtoi(sought.after, &after))
    return absl::InvalidArgumentError(absl::StrCat("--after '", sought.after, "' is not an event's sequence number, such as 17"));
  list.set_after_sequence(after);
  list.set_node(sought.node);
  if (!sought.nic.empty()) {
    const absl::StatusOr<NicName> nic = ParseNicName(sought.nic);
    if (!nic.ok()) return absl::InvalidArgumentError(absl::StrCat("--nic ", nic.status().message()));
    if (!sought.node.empty() && sought.node != nic->node)
      return absl::InvalidArgumentError(absl::StrCat("--nic ", sought.nic, " is none of --node ", sought.node));
    list.set_node(nic->node);
    list.set_nic(nic->nic);
  }
  if (!sought.since.empty()) {
    const absl::StatusOr<absl::Time> since = ParseSince(sought.since, now, zone);
    if (!since.ok()) return absl::InvalidArgumentError(absl::StrCat("--since ", since.status().message()));
    list.set_since_ns(absl::ToUnixNanos(*since));
  }
  for (const std::string& kind : sought.kinds) {
    if (!IsEventKind(kind)) return absl::InvalidArgumentError(absl::StrCat("--kind '", kind, "' is none of ", EventKindsText()));
    list.add_kinds(kind);
  }
  list.set_last(sought.last);
  return list;
}

}  // namespace r2cc::client
