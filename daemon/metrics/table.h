// All metrics, in one table: what each is called, what it means, when it is bad, and where its values come from. /metrics and
// docs/reference/metrics.md are both made of it. Pure.
#ifndef R2CC_DAEMON_METRICS_TABLE_H_
#define R2CC_DAEMON_METRICS_TABLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/metrics/facts.h"

namespace r2cc::daemon {

enum class MetricType { kGauge, kCounter, kHistogram };

// Takes the values of one metric as lines of Prometheus' text format.
class Series {
 public:
  using Labels = std::vector<std::pair<const char*, std::string>>;
  Series(std::string name, std::string* out) : name_(std::move(name)), out_(out) {}
  void Add(const Labels& labels, double value);
  void Add(const Labels& labels, uint64_t value);
  void Add(const Histogram& histogram);

 private:
  void Line(const std::string& name, const Labels& labels, const std::string& value);
  const std::string name_;
  std::string* const out_;
};

struct Metric {
  const char* name;
  MetricType type;
  const char* unit;    // "" where it is a number of things, or true (1) and false (0)
  const char* labels;  // names, separated by commas
  const char* help;    // one line
  const char* bad;     // which value is bad, and what it means
  void (*sample)(const MetricFacts& facts, const ProcessFacts& process, Series* series);
};

const std::vector<Metric>& Metrics();

// Prometheus' text format.
std::string RenderMetrics(const MetricFacts& facts, const ProcessFacts& process);

// docs/reference/metrics.md.
std::string MetricsReference();

// Escapes a label's value, or a help text, in that format: any name stays within its quotes and its line.
std::string EscapeLabel(const std::string& text);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_METRICS_TABLE_H_
