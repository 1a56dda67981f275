#include "client/commands/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace r2cc::client {
namespace {

// Levenshtein's distance.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

struct Unit {
  absl::string_view name;
  double factor;
};

// `text` as a number with one of `units`; not-a-number for anything else.
template <size_t N>
double ParseScaled(absl::string_view text, const Unit (&units)[N]) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const absl::string_view unit = absl::StripLeadingAsciiWhitespace(text.substr(static_cast<size_t>(end - text.data())));
  if (error == std::errc())
    for (const Unit& known : units)
      if (unit == known.name) return value * known.factor;
  return std::nan("");
}

}  // namespace

absl::StatusOr<NicName> ParseNicName(absl::string_view text) {
  const size_t slash = text.find('/');
  if (slash == absl::string_view::npos || slash == 0 || slash + 1 == text.size() || text.find('/', slash + 1) != absl::string_view::npos)
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not NODE/NIC, such as node1/rail0; `r2ccctl nic list` shows the names"));
  return NicName{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

absl::StatusOr<uint32_t> ParseWeightPermille(absl::string_view text) {
  const bool percent = absl::EndsWith(text, "%");
  const absl::string_view digits = percent ? text.substr(0, text.size() - 1) : text;
  const double scale = percent ? 10.0 : 1000.0;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed);
  const double permille = value * scale;
  // Written so that not-a-number is out of range too.
  if (error != std::errc() || end != digits.data() + digits.size() || !(permille >= 0 && permille <= 1000))
    return absl::InvalidArgumentError(absl::StrCat("weight '", text, "' is not a number from 0 to 1 (0.5) or from 0% to 100% (50%)"));
  const uint32_t rounded = static_cast<uint32_t>(std::lround(permille));
  if (rounded == 0 && permille > 0)
    return absl::InvalidArgumentError(absl::StrCat("weight '", text, "' is below the smallest, 0.001 (0.1%); 0 forbids the NIC"));
  return rounded;
}

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  constexpr double kMost = 1125899906842624;
  static constexpr Unit kUnits[] = {
      {"", 1},        {"B", 1},    {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776},
      {"PiB", kMost}, {"kB", 1e3}, {"KB", 1e3},   {"MB", 1e6},      {"GB", 1e9},         {"TB", 1e12}};
  const double bytes = ParseScaled(text, kUnits);
  if (!(bytes >= 1 && bytes <= kMost))
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a size from 1 B to 1 PiB, such as 64MiB or 1GiB"));
  return static_cast<uint64_t>(bytes);
}

absl::StatusOr<uint64_t> ParseBitRate(absl::string_view text) {
  static constexpr Unit kUnits[] = {{"bit/s", 1}, {"kbit/s", 1e3}, {"Mbit/s", 1e6}, {"Gbit/s", 1e9}, {"Tbit/s", 1e12},
                                    {"b/s", 1},   {"kb/s", 1e3},   {"Mb/s", 1e6},   {"Gb/s", 1e9},   {"Tb/s", 1e12}};
  const double rate = ParseScaled(text, kUnits);
  if (!(rate >= 1 && rate <= 1e15))
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a rate, such as 400Gbit/s or 25Gb/s"));
  return static_cast<uint64_t>(rate);
}

absl::StatusOr<double> ParseShortTime(absl::string_view text) {
  static constexpr Unit kUnits[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  const double seconds = text == "0" ? 0 : ParseScaled(text, kUnits);
  if (!(seconds >= 0 && seconds <= 1))
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a time up to a second, such as 5us or 100ns"));
  return seconds;
}

absl::StatusOr<int64_t> ParseDrillTime(absl::string_view text) {
  absl::Duration time;
  // As the daemon has it too.
  if (!absl::ParseDuration(std::string(text), &time) || time < absl::Seconds(1) || time > absl::Hours(24))
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not how long a drill may last: 1s to 24h, such as 90s, 10m or 1h30m"));
  return absl::ToInt64Nanoseconds(time);
}

absl::StatusOr<absl::Time> ParseSince(absl::string_view text, absl::Time now, absl::TimeZone zone) {
  static constexpr Unit kUnits[] = {{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};
  constexpr double kLongest = 100.0 * 365 * 86400;
  if (const double seconds = ParseScaled(text, kUnits); seconds > 0 && seconds <= kLongest) return now - absl::Seconds(seconds);
  absl::Duration before;
  if (absl::ParseDuration(std::string(text), &before) && before > absl::ZeroDuration() && before <= absl::Seconds(kLongest))
    return now - before;
  absl::Time time;
  std::string why;
  for (const char* format : {absl::RFC3339_full, "%Y-%m-%d %H:%M:%E*S", "%Y-%m-%d %H:%M", "%Y-%m-%d"})
    if (absl::ParseTime(format, std::string(text), zone, &time, &why)) return time;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is neither a time that has passed, such as 10m, 36h or 2d, nor one like 2026-11-25 03:12"));
}

std::string Nearest(absl::string_view typed, const std::vector<std::string>& choices) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, typed.size() / 3) + 1;
  for (const std::string& choice : choices) {
    const size_t distance = EditDistance(typed, choice);
    if (distance < best_distance && distance < choice.size()) {
      best = choice;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace r2cc::client
