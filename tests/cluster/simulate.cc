// ./bazelw run //tests/cluster:simulate -- --nodes 1024 --json
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "tests/cluster/report.h"
#include "tests/cluster/scenario.h"

namespace r2cc::cluster {
namespace {

constexpr Nanos kStartMax = 120 * kNanosPerSecond;

int Main(int argc, char** argv) {
  ClusterOptions options;
  double healthy_s = 5;
  bool json = false;
  std::vector<std::string> only;
  CLI::App app("Simulates a cluster of whole r2ccd in virtual time: what they cost when nothing is wrong, and what a fault brings.");
  app.add_option("--nodes", options.nodes, "machines, each with its daemon")->capture_default_str()->check(CLI::Range(8, 4096));
  app.add_option("--rails", options.rails, "NICs of each")->capture_default_str()->check(CLI::Range(2, 16));
  app.add_option("--seed", options.seed, "another seed is another run; the same one is the same run")->capture_default_str();
  app.add_option("--healthy-s", healthy_s, "virtual seconds without a fault that are measured")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 600.0));
  app.add_option("--fault", only, "only these; none: no fault")
      ->check(CLI::IsMember(
          {"none", "one_link_down", "one_silent_port", "one_rail_of_a_rack_silent", "rack_links_down", "rack_silent", "rack_power_loss"}));
  app.add_flag("--json", json, "one JSON object on standard output");
  CLI11_PARSE(app, argc, argv);
  SetMinSeverity(Severity::kError);

  const auto progress = [&](Cluster* cluster, const std::string& text) {
    std::fprintf(stderr, "%8.1f s: %s\n", static_cast<double>(cluster->Now()) / kNanosPerSecond, text.c_str());
  };
  Cluster cluster(options);
  progress(&cluster, "the daemons start");
  if (!cluster.Start(kStartMax)) {
    std::fprintf(stderr, "the cluster did not come to rest: %zu pages lack NICs\n", cluster.watch().missing());
    return 1;
  }
  Report report{.options = options, .memory_start_bytes = ResidentBytes()};
  report.connections = cluster.connections();
  progress(&cluster, "all know each other");
  report.healthy = MeasureHealthy(&cluster, static_cast<Nanos>(healthy_s * kNanosPerSecond));
  const std::set<int> rack = cluster.Rack(options.nodes / options.rack_nodes / 2);
  const Nic one = {options.nodes / 3, options.rails / 2};
  std::vector<Nic> leaf;
  for (const int node : rack) leaf.push_back({node, one.rail});
  for (const Fault& fault :
       {LinkDown(&cluster, {one}, "one_link_down"), Silence(&cluster, {one}, "one_silent_port"),
        Silence(&cluster, leaf, "one_rail_of_a_rack_silent"), LinkDown(&cluster, cluster.NicsOf(rack), "rack_links_down"),
        Silence(&cluster, cluster.NicsOf(rack), "rack_silent", /*known=*/false), PowerLoss(&cluster, rack, "rack_power_loss")}) {
    if (!only.empty() && std::find(only.begin(), only.end(), fault.name) == only.end()) continue;
    progress(&cluster, fault.name);
    report.outcomes.push_back(MeasureFault(&cluster, report.healthy, fault));
  }
  report.wrong = cluster.watch().wrong();
  report.memory_end_bytes = ResidentBytes();
  std::fputs((json ? ToJson(report) : ToTable(report)).c_str(), stdout);
  return 0;
}

}  // namespace
}  // namespace r2cc::cluster

int main(int argc, char** argv) { return r2cc::cluster::Main(argc, argv); }
