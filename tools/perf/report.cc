#include "tools/perf/report.h"

#include <cstdarg>
#include <cstdio>
#include <vector>

namespace r2cc::perf {
namespace {

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

// As nccl-tests: few enough digits that the column stays readable.
std::string TimeText(double us) { return Format(us >= 10000 ? "%8.0f" : us >= 100 ? "%8.1f" : "%8.2f", us); }

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += Format("\\u%04x", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string HashText(uint64_t hash) { return Format("%016llx", static_cast<unsigned long long>(hash)); }

const char* Bool(bool value) { return value ? "true" : "false"; }

std::string JsonRow(const Row& row) {
  return Format(
             "{\"size_bytes\":%lld,\"count\":%lld,\"iterations\":%lld,\"time_us\":%.3f,\"time_us_median\":%.3f,\"time_us_min\":%.3f,\"time_"
             "us_max\":%.3f,\"cpu_us\":%.3f,",
             static_cast<long long>(row.size_bytes), static_cast<long long>(row.count), static_cast<long long>(row.iterations), row.time_us,
             row.time_us_median, row.time_us_min, row.time_us_max, row.cpu_us) +
         Format("\"algbw_gbps\":%.6f,\"busbw_gbps\":%.6f,\"wrong\":%lld", row.algorithm_bytes_per_second * 8e-9,
                row.bus_bytes_per_second * 8e-9, static_cast<long long>(row.wrong)) +
         (row.hash.has_value() ? ",\"hash\":" + Quoted(HashText(*row.hash)) : "") + "}";
}

}  // namespace

std::string TableHeader(const Options& options, const RunInfo& info) {
  std::string text = Format("# r2cc-perf %s: %d ranks, %d channels, %s/%s (table v%d), devices ", CollectiveName(options.collective),
                            options.ranks, info.channels, options.collnet ? "COLLNET" : "NET", info.net_name.c_str(), info.net_version) +
                     info.devices + "\n#\n";
  text += Format("# %10s %12s %9s %7s %9s %8s %8s %7s%s\n", "size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong",
                 options.random_seed.has_value() ? "             hash" : "");
  text += Format("# %10s %12s %9s %7s %9s %8s %8s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)");
  return text;
}

std::string TableRow(const Options& options, const Row& row) {
  const std::string wrong = options.check ? std::to_string(row.wrong) : "N/A";
  const std::string hash = row.hash.has_value() ? " " + HashText(*row.hash) : "";
  return Format("%12lld %12lld %9s %7s %9s %8.3f %8.3f %7s%s\n", static_cast<long long>(row.size_bytes), static_cast<long long>(row.count),
                TypeName(options.type), options.collective == Collective::kAllReduce ? "sum" : "none", TimeText(row.time_us).c_str(),
                row.algorithm_bytes_per_second * 1e-9, row.bus_bytes_per_second * 1e-9, wrong.c_str(), hash.c_str());
}

std::string TableFooter(const Options& options, const Conductor& conductor) {
  double total = 0;
  for (const Row& row : conductor.rows()) total += row.bus_bytes_per_second * 1e-9;
  std::string text;
  if (conductor.stopped()) text += "# Stopped by a signal\n";
  text += options.check ? Format("# Wrong elements       : %lld %s\n", static_cast<long long>(conductor.wrong_elements()),
                                 conductor.wrong_elements() == 0 ? "OK" : "FAILED")
                        : std::string("# Wrong elements       : not checked\n");
  text += options.slot_checks ? Format("# Late writes          : %lld %s\n", static_cast<long long>(conductor.late_writes()),
                                       conductor.late_writes() == 0 ? "OK" : "FAILED")
                              : std::string("# Late writes          : not checked\n");
  if (!conductor.rows().empty()) text += Format("# Avg bus bandwidth    : %g GB/s\n", total / static_cast<double>(conductor.rows().size()));
  return text;
}

bool Passed(const Conductor& conductor) { return conductor.wrong_elements() == 0 && conductor.late_writes() == 0; }

std::string Json(const Options& options, const RunInfo& info, const Conductor& conductor, const std::string& error) {
  std::string text =
      Format("{\"collective\":\"%s\",\"ranks\":%d,\"channels\":%d,", CollectiveName(options.collective), options.ranks, info.channels);
  text += Format("\"collnet\":%s,\"type\":\"%s\",", Bool(options.collnet), TypeName(options.type));
  text += "\"plugin\":" + Quoted(options.plugin) + ",\"net_name\":" + Quoted(info.net_name) +
          Format(",\"net_version\":%d", info.net_version) + ",\"devices\":" + Quoted(info.devices);
  text += Format(",\"wrong_elements\":%lld,\"late_writes\":%lld,\"checked\":%s,", static_cast<long long>(conductor.wrong_elements()),
                 static_cast<long long>(conductor.late_writes()), Bool(options.check && options.slot_checks));
  text += Format("\"stopped\":%s,\"pass\":%s,", Bool(conductor.stopped()), Bool(error.empty() && Passed(conductor)));
  if (!error.empty()) text += "\"error\":" + Quoted(error) + ",";
  text += "\"rows\":[";
  std::vector<Row> rows = conductor.rows();
  if (!error.empty() && conductor.current().iterations > 0) rows.push_back(conductor.current());
  for (size_t i = 0; i < rows.size(); ++i) text += (i == 0 ? "" : ",") + JsonRow(rows[i]);
  return text + "]}";
}

}  // namespace r2cc::perf
