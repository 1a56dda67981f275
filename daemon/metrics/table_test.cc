#include "daemon/metrics/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;
using testing::Not;

// All that a node can have at once.
MetricFacts Full(size_t nics, size_t jobs) {
  MetricFacts facts;
  facts.node = "n0";
  facts.release = "0.3.0";
  for (size_t i = 0; i < nics; ++i) {
    NicFacts nic{.nic = "rail" + std::to_string(i), .device = "mlx5_" + std::to_string(i), .port = "1", .state = "HEALTHY"};
    nic.loss_worst = 0.5;
    nic.round_trip_s = 0.001;
    facts.nics.push_back(nic);
  }
  for (size_t i = 0; i < jobs; ++i) facts.jobs.push_back({.job = "job" + std::to_string(i), .processes = 8});
  facts.saved.died = {{"no-rail", 0}, {"rank-lost", 0}, {"other", 0}};
  if (nics == 1) facts.nics[0].drill = true;
  facts.nodes = {{"healthy", 1}, {"degraded", 0}, {"unhealthy", 0}, {"initializing", 0}, {"unreachable", 0}};
  facts.store_connected = true;
  facts.plan_published_s = facts.start_time_s = facts.certificate_until_s = 1;
  facts.alarms = {{"configuration", 0}, {"node", 0}, {"plan", 0}, {"rails", 0}};
  facts.probes_refused = {{"malformed", 0}, {"strangers", 0}, {"forged", 0}, {"misrouted", 0}, {"unexpected", 0}, {"icmp", 0}};
  facts.failovers_by_cause = {{"silence", 1}, {"link-down", 1}, {"page", 1}};
  facts.refusals = {{{"http", "garbage"}, 1}, {{"peers", "tls"}, 1}};
  facts.operator_actions = {{"drain", 1}};
  return facts;
}

std::vector<std::string> SeriesOf(const std::string& text) {
  std::vector<std::string> series;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && line[0] != '#') series.push_back(line);
  return series;
}

TEST(MetricsTest, ANodeOfEightNicsHasAtMostTwoHundredSeries) {
  const size_t node = SeriesOf(RenderMetrics(Full(8, 0), {})).size();
  EXPECT_LE(node, 200u);
  EXPECT_LE(SeriesOf(RenderMetrics(Full(8, 17), {})).size(), node + 17 * 5);
}

TEST(MetricsTest, EachLineIsOneThatPrometheusReads) {
  const std::regex line(R"([a-z_][a-z0-9_]*(\{([a-z_]+="([^"\\]|\\["\\n])*",?)+\})? [-+0-9.e]+)");
  for (const std::string& series : SeriesOf(RenderMetrics(Full(2, 2), {.cpu_s = 1.5, .resident_bytes = 4096, .open_descriptors = 9})))
    EXPECT_TRUE(std::regex_match(series, line)) << series;
}

TEST(MetricsTest, AHostileNameStaysInItsLabel) {
  MetricFacts facts = Full(1, 1);
  facts.jobs[0].job = "a\"} 1\nr2cc_insecure{x=\"\\\x1b[31m\xff";
  const std::string text = RenderMetrics(facts, {});
  EXPECT_THAT(text, HasSubstr(R"(r2cc_job_processes{job_name="a\"} 1\nr2cc_insecure{x=\"\\?[31m?"} 8)"));
  EXPECT_THAT(text, Not(HasSubstr("\nr2cc_insecure{")));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::count_if(text.begin(), text.end(), [](char c) { return c == '\n'; }));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(MetricsTest, NamesFollowPrometheusRulesAndEachHasItsMeaning) {
  std::set<std::string> names;
  for (const Metric& metric : Metrics()) {
    const std::string name = metric.name;
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(name.starts_with("r2cc_") || name.starts_with("process_")) << name;
    EXPECT_EQ(name.ends_with("_total"), metric.type == MetricType::kCounter) << name;
    EXPECT_FALSE(std::string(metric.help).empty()) << name;
    EXPECT_FALSE(std::string(metric.bad).empty()) << name;
    for (const char* const text : {metric.help, metric.bad, metric.labels})
      EXPECT_EQ(std::string(text).find_first_of("|\n\\"), std::string::npos) << name;
  }
}

TEST(MetricsTest, TheLabelsAreThoseOfTheTable) {
  const std::string text = RenderMetrics(Full(1, 1), {});
  for (const Metric& metric : Metrics()) {
    const std::string begin = std::string("\n") + metric.name + (metric.type == MetricType::kHistogram ? "_count" : "");
    const size_t at = text.find(begin + (*metric.labels == '\0' || metric.type == MetricType::kHistogram ? " " : "{"));
    ASSERT_NE(at, std::string::npos) << metric.name;
    std::string labels;
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    const std::regex label(R"(([a-z_]+)=")");
    for (std::sregex_iterator i(line.begin(), line.end(), label), end; i != end; ++i)
      labels += (labels.empty() ? "" : ", ") + (*i)[1].str();
    EXPECT_EQ(labels, metric.labels) << metric.name;
  }
}

TEST(MetricsTest, AHistogramAddsUp) {
  MetricFacts facts;
  for (const double seconds : {0.0005, 0.001, 0.03, 7.0}) facts.failover_seconds.Observe(seconds);
  const std::string text = RenderMetrics(facts, {});
  for (const char* const line : {"_bucket{le=\"0.002\"} 2\n", "_bucket{le=\"0.05\"} 3\n", "_bucket{le=\"2\"} 3\n",
                                 "_bucket{le=\"+Inf\"} 4\n", "_sum 7.0315\n", "_count 4\n"})
    EXPECT_THAT(text, HasSubstr(std::string("r2cc_failover_duration_seconds") + line));
}

TEST(MetricsTest, UnknownValuesAreAbsent) {
  const std::string text = RenderMetrics(MetricFacts(), {});
  for (const char* const name :
       {"r2cc_store_connected", "r2cc_certificate_expiry_timestamp_seconds", "r2cc_probe_loss_ratio", "r2cc_nic_state"})
    EXPECT_THAT(text, Not(HasSubstr(name))) << name;
}

}  // namespace
}  // namespace r2cc::daemon
