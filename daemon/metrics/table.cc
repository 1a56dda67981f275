#include "daemon/metrics/table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace r2cc::daemon {
namespace {

using enum MetricType;
using Facts = MetricFacts;
using Process = ProcessFacts;

const char* TypeName(MetricType type) { return type == kGauge ? "gauge" : type == kCounter ? "counter" : "histogram"; }

Series::Labels LabelsOf(const NicFacts& nic) { return {{"nic", nic.nic}, {"device", nic.device}, {"port", nic.port}}; }

// One series for each NIC, of a member.
template <auto member>
void NicSeries(const Facts& facts, const Process&, Series* series) {
  for (const NicFacts& nic : facts.nics) series->Add(LabelsOf(nic), nic.*member);
}
// The same for what is true or false.
template <auto member>
void IfNics(const Facts& facts, const Process&, Series* series) {
  for (const NicFacts& nic : facts.nics) series->Add(LabelsOf(nic), nic.*member ? uint64_t{1} : uint64_t{0});
}
// For what is not always known.
template <auto member>
void KnownOfNics(const Facts& facts, const Process&, Series* series) {
  for (const NicFacts& nic : facts.nics)
    if ((nic.*member).has_value()) series->Add(LabelsOf(nic), *(nic.*member));
}
template <auto member>
void NodeSeries(const Facts& facts, const Process&, Series* series) {
  series->Add({}, static_cast<uint64_t>(facts.*member));
}
template <auto member>
void TimeOfNode(const Facts& facts, const Process&, Series* series) {
  if (facts.*member > 0) series->Add({}, facts.*member);
}
template <auto member>
void JobSeries(const Facts& facts, const Process&, Series* series) {
  for (const JobFacts& job : facts.jobs) series->Add({{"job_name", job.job}}, static_cast<uint64_t>(job.*member));
}

template <auto member>
void SavedSeries(const Facts& facts, const Process&, Series* series) {
  series->Add({}, static_cast<double>(facts.saved.*member));
}

// A map whose key is the value of label `name`.
template <typename Map>
void ByKey(const Map& map, const char* name, Series* series) {
  for (const auto& [key, value] : map) series->Add({{name, key}}, static_cast<uint64_t>(value));
}

std::vector<Metric> MakeMetrics() {
  return {
      {"r2cc_build_info", kGauge, "", "version, peer_protocol, attach_version, page_version",
       "The release of r2ccd and its protocol versions; always 1.",
       "two versions in one cluster for more than a day: an upgrade has stopped half way",
       [](const Facts& f, const Process&, Series* s) {
         s->Add({{"version", f.release},
                 {"peer_protocol", std::to_string(f.peer_protocol)},
                 {"attach_version", std::to_string(f.attach_version)},
                 {"page_version", std::to_string(f.page_version)}},
                uint64_t{1});
       }},
      {"r2cc_node_info", kGauge, "", "node", "The name of this node among the daemons; always 1.", "two targets with one name",
       [](const Facts& f, const Process&, Series* s) {
         s->Add({{"node", f.node}}, uint64_t{1});
       }},
      {"r2cc_nic_info", kGauge, "", "nic, device, port, interface, pci, address", "What a NIC is; always 1.",
       "an address that changes without an operator",
       [](const Facts& f, const Process&, Series* s) {
         for (const NicFacts& nic : f.nics) {
           Series::Labels labels = LabelsOf(nic);
           labels.insert(labels.end(), {{"interface", nic.interface}, {"pci", nic.pci}, {"address", nic.address}});
           s->Add(labels, uint64_t{1});
         }
       }},
      {"r2cc_nic_state", kGauge, "", "nic, device, port, state", "The state of a NIC; 1 for the present one, the others are absent.",
       "FAILED; SUSPECT for more than a minute; DRAINED for more than a day: `r2ccctl nic why NODE/NIC`",
       [](const Facts& f, const Process&, Series* s) {
         for (const NicFacts& nic : f.nics) {
           Series::Labels labels = LabelsOf(nic);
           labels.emplace_back("state", nic.state);
           s->Add(labels, uint64_t{1});
         }
       }},
      {"r2cc_nic_state_since_timestamp_seconds", kGauge, "seconds", "nic, device, port", "When the NIC came into its state.", "-",
       NicSeries<&NicFacts::since_s>},
      {"r2cc_nic_weight_ratio", kGauge, "ratio", "nic, device, port",
       "The cap on the traffic of a NIC by the plan, relative to the heaviest NIC of the node.",
       "0 on all NICs: jobs here carry nothing; 0 on all but one: the next fault ends them", NicSeries<&NicFacts::weight>},
      {"r2cc_nic_speed_bytes_per_second", kGauge, "bytes per second", "nic, device, port",
       "The rate of a NIC, the lesser of the configured and the negotiated one; 0 if it is not known.",
       "below its twins': the link came up at a lower rate", NicSeries<&NicFacts::speed_bytes_per_s>},
      {"r2cc_nic_link_up", kGauge, "", "nic, device, port", "Whether the kernel shows a link.", "0 on a port with a cable",
       IfNics<&NicFacts::link_up>},
      {"r2cc_nic_drill", kGauge, "", "nic, device, port", "1 for a NIC that is failed by a drill; absent for the others.",
       "present outside the time of drills",
       [](const Facts& f, const Process&, Series* s) {
         for (const NicFacts& nic : f.nics)
           if (nic.drill) s->Add(LabelsOf(nic), uint64_t{1});
       }},
      {"r2cc_link_flaps_total", kCounter, "", "nic, device, port", "How often the link went down.", "more than 3 in an hour: the cable",
       NicSeries<&NicFacts::flaps>},
      {"r2cc_nic_verdicts_total", kCounter, "", "nic, device, port", "How often the NIC became SUSPECT, DEGRADED or FAILED.",
       "growing while it is HEALTHY in between: `r2ccctl nic why`", NicSeries<&NicFacts::verdicts>},
      {"r2cc_sent_bytes_total", kCounter, "bytes", "nic, device, port", "What jobs of this node sent over the NIC.",
       "no growth on one NIC while its twins' grow", NicSeries<&NicFacts::sent_bytes>},
      {"r2cc_received_bytes_total", kCounter, "bytes", "nic, device, port", "What jobs of this node received over the NIC.",
       "no growth on one NIC while its twins' grow", NicSeries<&NicFacts::received_bytes>},
      {"r2cc_replayed_bytes_total", kCounter, "bytes", "nic, device, port",
       "Bytes that jobs sent again over other NICs after this one lost them.", "growing: the NIC loses links under load",
       NicSeries<&NicFacts::replayed_bytes>},
      {"r2cc_failovers_total", kCounter, "", "nic, device, port", "Links of this NIC that jobs gave up.",
       "growing without r2cc_nic_verdicts_total: a fault that r2ccd does not see", NicSeries<&NicFacts::failovers>},
      {"r2cc_failovers_by_cause_total", kCounter, "", "cause", "Links that jobs gave up, by cause, as far as they are events.",
       "see r2cc_failovers_total", [](const Facts& f, const Process&, Series* s) { ByKey(f.failovers_by_cause, "cause", s); }},
      {"r2cc_failover_duration_seconds", kHistogram, "seconds", "",
       "How long it took from the moment when a link was given up until its data was sent again.", "a 99th percentile above 0.05",
       [](const Facts& f, const Process&, Series* s) { s->Add(f.failover_seconds); }},
      {"r2cc_rail_probes_total", kCounter, "", "nic, device, port", "Rail probes that left by the NIC.", "no growth: the NIC is not probed",
       NicSeries<&NicFacts::probes>},
      {"r2cc_rail_probes_answered_total", kCounter, "", "nic, device, port", "Rail probes that were answered.",
       "growing more slowly than r2cc_rail_probes_total", NicSeries<&NicFacts::probes_answered>},
      {"r2cc_probe_loss_ratio", kGauge, "ratio", "nic, device, port", "Probes without an answer in the last 5 to 10 s, of the worst pair.",
       "above 0.01 for minutes: a path loses packets", KnownOfNics<&NicFacts::loss_worst>},
      {"r2cc_probe_round_trip_seconds", kGauge, "seconds", "nic, device, port", "The round trip of the middle pair, smoothed.",
       "several times that of its twins", KnownOfNics<&NicFacts::round_trip_s>},
      {"r2cc_rail_probing", kGauge, "", "nic, device, port", "Whether the NIC's rail probes are conclusive.",
       "0 while its link is up: r2ccd gets no answers there, `r2ccctl nic list` has the reason", IfNics<&NicFacts::probing>},
      {"r2cc_probes_sent_total", kCounter, "", "", "Rail probes that this daemon sent, large ones too.", "above 200 a second",
       NodeSeries<&Facts::probes_sent>},
      {"r2cc_probes_refused_total", kCounter, "", "reason", "Datagrams on the probes' ports that were rejected.",
       "forged or strangers growing: another program sends there",
       [](const Facts& f, const Process&, Series* s) { ByKey(f.probes_refused, "reason", s); }},
      {"r2cc_nodes", kGauge, "", "status", "Nodes of the cluster, as this daemon sees them.", "unreachable for 5 minutes",
       [](const Facts& f, const Process&, Series* s) { ByKey(f.nodes, "status", s); }},
      {"r2cc_peers", kGauge, "", "state", "Daemons that this one talks to directly.", "lost for 5 minutes",
       [](const Facts& f, const Process&, Series* s) {
         s->Add({{"state", "connected"}}, uint64_t{f.peers_connected});
         s->Add({{"state", "lost"}}, uint64_t{f.peers_lost});
       }},
      {"r2cc_store_connected", kGauge, "", "", "Whether the store answers; absent without a store.", "0: views of far nodes grow old",
       [](const Facts& f, const Process&, Series* s) {
         if (f.store_connected.has_value()) s->Add({}, uint64_t{*f.store_connected ? 1u : 0u});
       }},
      {"r2cc_plan_refused", kGauge, "", "", "Whether the newest plan was refused, so that the one before is in force.",
       "1: send a support bundle", NodeSeries<&Facts::plan_refused>},
      {"r2cc_plan_published_timestamp_seconds", kGauge, "seconds", "", "When the plan in force was published.", "-",
       TimeOfNode<&Facts::plan_published_s>},
      {"r2cc_plan_entries", kGauge, "", "", "NICs of the plan in force.", "above 0.8 of r2cc_plan_entries_max",
       NodeSeries<&Facts::plan_entries>},
      {"r2cc_plan_entries_max", kGauge, "", "", "Entries that the plan page has room for.", "-", NodeSeries<&Facts::plan_entries_max>},
      {"r2cc_jobs_attached", kGauge, "", "", "Processes of jobs that are attached.", "0 on a node whose GPUs work",
       NodeSeries<&Facts::jobs_attached>},
      {"r2cc_job_processes", kGauge, "", "job_name", "Attached processes of a job; of more than 16 jobs the others are `other`.", "-",
       JobSeries<&JobFacts::processes>},
      {"r2cc_job_rails", kGauge, "", "job_name", "The most rails that a process of the job has.", "-", JobSeries<&JobFacts::rails>},
      {"r2cc_job_rails_usable", kGauge, "", "job_name", "The fewest of them that a process can use by the plan.",
       "1: the next fault ends the job", JobSeries<&JobFacts::rails_usable>},
      {"r2cc_job_faults", kGauge, "", "job_name", "Rails that the attached processes of the job have lost so far.",
       "growing: see `r2ccctl job report`", JobSeries<&JobFacts::faults>},
      {"r2cc_job_without_progress_seconds", kGauge, "seconds", "job_name",
       "For how long requests of a process of the job have made no progress, of the longest; 0: all make some, or have none.",
       "above 10: the job hangs, `r2ccctl jobs --bad` names what it waits for",
       [](const Facts& f, const Process&, Series* s) {
         for (const JobFacts& job : f.jobs) s->Add({{"job_name", job.job}}, job.waited_s);
       }},
      {"r2cc_job_processes_of_other_releases", kGauge, "", "", "Attached processes with a plugin of another release than r2ccd.",
       "not 0 before an upgrade to the release after the next one", NodeSeries<&Facts::jobs_of_other_releases>},
      {"r2cc_job_errors_total", kCounter, "", "", "Peers that processes of jobs gave up: each job ended of it.", "any growth",
       NodeSeries<&Facts::job_errors>},
      {"r2cc_saved_faults_masked", kGauge, "", "", "Faults in the last 30 days after which jobs of this node went on; drills are none.",
       "growing: see `r2ccctl report`", SavedSeries<&SavedFacts::faults_masked>},
      {"r2cc_saved_gpu_seconds", kGauge, "seconds", "bound",
       "What restarts after these faults would have cost this node's processes, if a restart costs little (5 min, and half of 10 min done "
       "again) and if it costs much (15 min, and half of 1 h).",
       "-",
       [](const Facts& f, const Process&, Series* s) {
         s->Add({{"bound", "low"}}, f.saved.gpu_low_s);
         s->Add({{"bound", "high"}}, f.saved.gpu_high_s);
       }},
      {"r2cc_saved_job_seconds", kGauge, "seconds", "",
       "For how long jobs ran after the first fault that would have ended them, in the last 30 days.", "-",
       SavedSeries<&SavedFacts::alive_s>},
      {"r2cc_jobs_reduced_seconds", kGauge, "seconds", "", "For how long jobs ran with fewer rails, in the last 30 days.",
       "a large part of the time: a NIC waits for its repair", SavedSeries<&SavedFacts::reduced_s>},
      {"r2cc_jobs_died", kGauge, "", "cause", "Jobs that ended early all the same, in the last 30 days.",
       "no-rail above 0: `r2ccctl jobs --ended`", [](const Facts& f, const Process&, Series* s) { ByKey(f.saved.died, "cause", s); }},
      {"r2cc_evidence_dropped_total", kCounter, "", "", "Records of jobs that had no room in their rings.",
       "growing: r2ccd has no processor", NodeSeries<&Facts::evidence_dropped>},
      {"r2cc_attach_refused_total", kCounter, "", "", "Connections and requests of jobs that were turned away.",
       "growing: the job runs without r2ccd", NodeSeries<&Facts::attach_refused>},
      {"r2cc_refusals_total", kCounter, "", "listener, reason", "What was refused, at each port.",
       "any rate: `r2ccctl status` names the last",
       [](const Facts& f, const Process&, Series* s) {
         for (const auto& [key, times] : f.refusals) s->Add({{"listener", key.first}, {"reason", key.second}}, times);
       }},
      {"r2cc_operator_actions_total", kCounter, "", "action", "What operators did or were refused.", "fail outside the time of drills",
       [](const Facts& f, const Process&, Series* s) { ByKey(f.operator_actions, "action", s); }},
      {"r2cc_duplicate_nodes_total", kCounter, "", "", "How often two daemons of one name were seen.", "any growth: a cloned machine",
       NodeSeries<&Facts::duplicate_nodes>},
      {"r2cc_alarms", kGauge, "", "about", "Alarms in `r2ccctl status`.", "not 0",
       [](const Facts& f, const Process&, Series* s) { ByKey(f.alarms, "about", s); }},
      {"r2cc_config_pending", kGauge, "", "", "Settings in the files that wait for a restart.", "not 0 for a day",
       NodeSeries<&Facts::config_pending>},
      {"r2cc_config_refused", kGauge, "", "", "Mistakes in the files, so that the configuration before is in force.", "not 0",
       NodeSeries<&Facts::config_refused>},
      {"r2cc_certificate_expiry_timestamp_seconds", kGauge, "seconds", "",
       "When the first certificate of this node ends; absent without any.", "in less than 14 days: `r2ccctl certs issue`",
       TimeOfNode<&Facts::certificate_until_s>},
      {"r2cc_insecure", kGauge, "", "", "Whether everybody who can reach the daemons' port may command this node.",
       "1 outside a laboratory", NodeSeries<&Facts::insecure>},
      {"r2cc_core_long_turns_total", kCounter, "", "",
       "Turns of the core's loop that took more than 50 ms of processor time. The plan page waits for them.",
       "any growth: send a support bundle", [](const Facts& f, const Process&, Series* s) { s->Add({}, f.core_turns.over); }},
      {"r2cc_core_turn_longest_seconds", kGauge, "seconds", "",
       "The longest processor time of a turn since r2ccd started, up to 20 ms too much.", "above 0.05",
       [](const Facts& f, const Process&, Series* s) { s->Add({}, f.core_turns.longest_s); }},
      {"process_start_time_seconds", kGauge, "seconds", "", "When r2ccd started.", "it changes often: r2ccd is restarted",
       TimeOfNode<&Facts::start_time_s>},
      {"process_cpu_seconds_total", kCounter, "seconds", "", "Processor time of r2ccd.", "more than 0.01 a second on an idle node",
       [](const Facts&, const Process& p, Series* s) { s->Add({}, p.cpu_s); }},
      {"process_resident_memory_bytes", kGauge, "bytes", "", "Memory of r2ccd.", "above 256 MiB",
       [](const Facts&, const Process& p, Series* s) { s->Add({}, p.resident_bytes); }},
      {"process_open_fds", kGauge, "", "", "Descriptors of r2ccd.", "growing without end",
       [](const Facts&, const Process& p, Series* s) { s->Add({}, p.open_descriptors); }},
  };
}

}  // namespace

std::string EscapeLabel(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\\\";
    else if (c == '"')
      escaped += "\\\"";
    else if (c == '\n')
      escaped += "\\n";
    else
      escaped += static_cast<signed char>(c) < ' ' || c == '\x7f' ? '?' : c;  // nor UTF-8, which may be broken
  }
  return escaped;
}

void Series::Line(const std::string& name, const Labels& labels, const std::string& value) {
  *out_ += name;
  for (size_t i = 0; i < labels.size(); ++i)
    absl::StrAppend(out_, i == 0 ? "{" : ",", labels[i].first, "=\"", EscapeLabel(labels[i].second), "\"");
  absl::StrAppend(out_, labels.empty() ? " " : "} ", value, "\n");
}

void Series::Add(const Labels& labels, double value) { Line(name_, labels, absl::StrFormat("%.10g", value)); }
void Series::Add(const Labels& labels, uint64_t value) { Line(name_, labels, std::to_string(value)); }

void Series::Add(const Histogram& histogram) {
  uint64_t count = 0;
  for (size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    count += histogram.counts[i];
    Line(name_ + "_bucket", {{"le", absl::StrFormat("%g", Histogram::kBounds[i])}}, std::to_string(count));
  }
  count += histogram.counts.back();
  Line(name_ + "_bucket", {{"le", "+Inf"}}, std::to_string(count));
  Line(name_ + "_sum", {}, absl::StrFormat("%.10g", histogram.sum));
  Line(name_ + "_count", {}, std::to_string(count));
}

const std::vector<Metric>& Metrics() {
  static const std::vector<Metric>& metrics = *new std::vector<Metric>(MakeMetrics());
  return metrics;
}

std::string RenderMetrics(const MetricFacts& facts, const ProcessFacts& process) {
  std::string text;
  for (const Metric& metric : Metrics()) {
    std::string lines;
    Series series(metric.name, &lines);
    metric.sample(facts, process, &series);
    if (lines.empty()) continue;
    absl::StrAppend(&text, "# HELP ", metric.name, " ", metric.help, "\n# TYPE ", metric.name, " ", TypeName(metric.type), "\n", lines);
  }
  return text;
}

std::string MetricsReference() {
  std::string text =
      "# Metrics\n\n"
      "r2ccd serves these at `http://127.0.0.1:9460/metrics` in Prometheus' text format. They are about its own node only. A node with 8 "
      "NICs has at\n"
      "most 200 series, and 5 more for each of up to 16 jobs. A scrape asks the core once; one within 100 ms of another gets the same "
      "text. `device` "
      "and\n"
      "`port` are those of the RDMA device, as other exporters of RDMA ports call them, or the interface and `1` if there is none.\n\n"
      "This page is generated from the table in `daemon/metrics/table.cc`: `./bazelw run //daemon/metrics:reference > "
      "docs/reference/metrics.md`. Alert rules and\n"
      "a Grafana dashboard are in `deploy/monitoring`.\n\n"
      "| metric | type | unit | labels | what it is | bad when |\n|---|---|---|---|---|---|\n";
  for (const Metric& metric : Metrics())
    absl::StrAppend(&text, "| `", metric.name, "` | ", TypeName(metric.type), " | ", *metric.unit == '\0' ? "-" : metric.unit, " | ",
                    *metric.labels == '\0' ? "-" : metric.labels, " | ", metric.help, " | ", metric.bad, " |\n");
  return text;
}

}  // namespace r2cc::daemon
