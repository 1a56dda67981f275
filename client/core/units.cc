#include "client/core/units.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace r2cc::client {
namespace {

// `value` in the largest of `units` that keeps it at or above 1, with one decimal where there is one to see.
template <size_t N>
std::string Scale(double value, double step, const absl::string_view (&units)[N]) {
  size_t unit = 0;
  // 0.9995: what would be printed as 1024.0 MiB is 1.0 GiB.
  while (unit + 1 < N && value >= step * 0.9995) {
    value /= step;
    ++unit;
  }
  std::string number = absl::StrFormat("%.1f", value);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return absl::StrCat(number, " ", units[unit]);
}

}  // namespace

std::string FormatBytes(uint64_t bytes) { return Scale(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"}); }

std::string FormatRate(uint64_t bits_per_s) {
  if (bits_per_s == 0) return "?";
  return Scale(static_cast<double>(bits_per_s), 1000, {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"});
}

std::string FormatDuration(int64_t duration_ns) {
  if (duration_ns < 0) return "0 s";
  if (duration_ns < 1'000'000) return absl::StrFormat("%d us", duration_ns / 1000);
  if (duration_ns < 1'000'000'000) return absl::StrFormat("%.1f ms", static_cast<double>(duration_ns) / 1e6);
  const int64_t seconds = duration_ns / 1'000'000'000;
  if (seconds < 60) return absl::StrFormat("%.1f s", static_cast<double>(duration_ns) / 1e9);
  if (seconds < 3600) return absl::StrFormat("%d min %d s", seconds / 60, seconds % 60);
  if (seconds < 86400) return absl::StrFormat("%d h %d min", seconds / 3600, seconds % 3600 / 60);
  return absl::StrFormat("%d d %d h", seconds / 86400, seconds % 86400 / 3600);
}

std::string FormatPermille(uint32_t permille) {
  return permille % 10 == 0 ? absl::StrFormat("%d%%", permille / 10) : absl::StrFormat("%d.%d%%", permille / 10, permille % 10);
}

}  // namespace r2cc::client
