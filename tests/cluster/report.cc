#include "tests/cluster/report.h"

#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace r2cc::cluster {
namespace {

constexpr size_t kWrongShown = 20;

double Ms(Nanos time) { return static_cast<double>(time) / kNanosPerMs; }

double PerNodeSecond(const Report& report, double amount) {
  return amount / report.options.nodes / (static_cast<double>(report.healthy.time) / kNanosPerSecond);
}

std::string TrafficJson(const Counts& counts, double divisor) {
  std::string text = "{";
  for (int kind = 0; kind < kKinds; ++kind) {
    const Traffic& one = counts.Of(static_cast<Kind>(kind));
    absl::StrAppendFormat(&text, "%s\"%s\": {\"messages\": %.6g, \"bytes\": %.6g}", kind == 0 ? "" : ", ",
                          KindName(static_cast<Kind>(kind)), static_cast<double>(one.messages) / divisor,
                          static_cast<double>(one.bytes) / divisor);
  }
  return text + "}";
}

std::string OutcomeJson(const Outcome& outcome) {
  std::string delays;
  if (!outcome.delays.empty())
    delays = absl::StrFormat("\"page_ms_p50\": %.3f, \"page_ms_p99\": %.3f, \"page_ms_max\": %.3f, ", Ms(Percentile(outcome.delays, 0.5)),
                             Ms(Percentile(outcome.delays, 0.99)), Ms(outcome.delays.back()));
  return absl::StrFormat(
      "{\"fault\": \"%s\", \"pages_expected\": %d, \"pages_missing\": %d, %s\"back_missing\": %d, \"back_ms_max\": %.1f, "
      "\"verdicts\": %d, \"views\": %d, \"pages_published\": %d, \"processor_s\": %.3f, \"traffic\": %s}",
      outcome.name, outcome.pages_expected, outcome.pages_missing, delays, outcome.back_missing, Ms(outcome.back_max), outcome.verdicts,
      outcome.views, outcome.pages, outcome.processor_s, TrafficJson(outcome.counts, 1));
}

}  // namespace

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t all = 0;
  uint64_t resident = 0;
  statm >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string ToJson(const Report& report) {
  const double node_seconds = report.options.nodes * (static_cast<double>(report.healthy.time) / kNanosPerSecond);
  std::string text = absl::StrFormat(
      "{\"nodes\": %d, \"rails\": %d, \"seed\": %d, \"connections\": %d, \"memory_bytes_per_node_start\": %d, "
      "\"memory_bytes_per_node_end\": %d,\n\"healthy_per_node_second\": {\"processor_ms\": %.3f, \"views\": %.4g, \"traffic\": "
      "%s},\n\"faults\": [",
      report.options.nodes, report.options.rails, report.options.seed, report.connections,
      report.memory_start_bytes / static_cast<uint64_t>(report.options.nodes),
      report.memory_end_bytes / static_cast<uint64_t>(report.options.nodes), PerNodeSecond(report, report.healthy.processor_s * 1e3),
      PerNodeSecond(report, report.healthy.views), TrafficJson(report.healthy.counts, node_seconds));
  for (size_t i = 0; i < report.outcomes.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ",\n", OutcomeJson(report.outcomes[i]));
  return absl::StrCat(text, "],\n\"false_verdicts\": ", report.wrong.size(), "}\n");
}

std::string ToTable(const Report& report) {
  std::string text =
      absl::StrFormat("%d nodes x %d NICs, seed %d; %d connections between daemons; %.1f MiB of memory a node, %.1f in the end\n\n",
                      report.options.nodes, report.options.rails, report.options.seed, report.connections,
                      static_cast<double>(report.memory_start_bytes) / report.options.nodes / 1048576,
                      static_cast<double>(report.memory_end_bytes) / report.options.nodes / 1048576);
  absl::StrAppendFormat(&text, "healthy, per node and second: %.2f ms of processor\n",
                        PerNodeSecond(report, report.healthy.processor_s * 1e3));
  absl::StrAppendFormat(&text, "  %-12s %10s %12s\n", "", "messages", "bytes");
  for (int kind = 0; kind < kKinds; ++kind) {
    const Traffic& one = report.healthy.counts.Of(static_cast<Kind>(kind));
    absl::StrAppendFormat(&text, "  %-12s %10.2f %12.0f\n", KindName(static_cast<Kind>(kind)),
                          PerNodeSecond(report, static_cast<double>(one.messages)), PerNodeSecond(report, static_cast<double>(one.bytes)));
  }
  absl::StrAppendFormat(&text, "\n%-26s %9s %9s %9s %9s %9s %8s %8s %9s %11s %13s %9s\n", "fault", "pages", "p50 ms", "p99 ms", "max ms",
                        "back ms", "verdicts", "views", "plans", "messages", "bytes", "cpu s");
  for (const Outcome& outcome : report.outcomes) {
    const bool any = !outcome.delays.empty();
    const auto percentile = [&](double share) {
      return any ? absl::StrFormat("%.1f", Ms(Percentile(outcome.delays, share))) : std::string("-");
    };
    absl::StrAppendFormat(&text, "%-26s %9s %9s %9s %9s %9.0f %8d %8d %9d %11d %13d %9.2f\n", outcome.name,
                          absl::StrCat(outcome.pages_expected - outcome.pages_missing, "/", outcome.pages_expected), percentile(0.5),
                          percentile(0.99), percentile(1), Ms(outcome.back_max), outcome.verdicts, outcome.views, outcome.pages,
                          outcome.counts.NewsMessages(), outcome.counts.NewsBytes(), outcome.processor_s);
  }
  absl::StrAppend(&text, "\nfalse verdicts: ", report.wrong.size(), "\n");
  for (size_t i = 0; i < report.wrong.size() && i < kWrongShown; ++i) absl::StrAppend(&text, "  ", report.wrong[i], "\n");
  return text;
}

}  // namespace r2cc::cluster
