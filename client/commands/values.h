// Parses the NIC and the weight that a person types.
#ifndef R2CC_CLIENT_COMMANDS_VALUES_H_
#define R2CC_CLIENT_COMMANDS_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace r2cc::client {

struct NicName {
  std::string node;
  std::string nic;
};

// "node1/rail0". InvalidArgument, with the syntax, for anything else.
absl::StatusOr<NicName> ParseNicName(absl::string_view text);

// A weight from 0 to 1 ("0.25") or from 0% to 100% ("25%") as permille, rounded. InvalidArgument for anything else, and for what
// would round to 0 without being 0, because 0 forbids the NIC.
absl::StatusOr<uint32_t> ParseWeightPermille(absl::string_view text);

// "1GiB", "64 MiB", "1500", "2GB": bytes. InvalidArgument for anything else, for 0 and for more than 1 PiB.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);

// "400Gbit/s", "25 Gb/s", "100Mbit/s": bits a second. InvalidArgument for anything else and for 0.
absl::StatusOr<uint64_t> ParseBitRate(absl::string_view text);

// "5us", "100ns", "1.5 ms", "0": seconds. InvalidArgument for anything else and for more than a second.
absl::StatusOr<double> ParseShortTime(absl::string_view text);

// "10m", "90s", "1h30m": how long a drill lasts, in nanoseconds. InvalidArgument for anything else and outside of 1 s to 24 h.
absl::StatusOr<int64_t> ParseDrillTime(absl::string_view text);

// "10m", "36h", "2d": that long before `now`; or a time, "2026-11-25 03:12", "2026-11-25 03:12:05", "2026-11-25" in `zone`, or one with a
// zone of its own, "2026-11-25T03:12:05+01:00". InvalidArgument for anything else.
absl::StatusOr<absl::Time> ParseSince(absl::string_view text, absl::Time now, absl::TimeZone zone);

// The one of `choices` that `typed` probably meant; empty if none is near.
std::string Nearest(absl::string_view typed, const std::vector<std::string>& choices);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_VALUES_H_
