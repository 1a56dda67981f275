#include "client/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Parsed Parse(absl::string_view line) {
  return ParseArguments(absl::StrSplit(line, ' ', absl::SkipEmpty()), absl::FromUnixSeconds(1'735'787'045), absl::UTCTimeZone());
}

// The request of a line that must be right.
template <typename Message>
Message RequestOf(absl::string_view line) {
  const Parsed parsed = Parse(line);
  const auto* invocation = std::get_if<Invocation>(&parsed);
  EXPECT_NE(invocation, nullptr) << line;
  if (invocation == nullptr) return Message();
  const auto* message = std::get_if<Message>(&invocation->request);
  EXPECT_NE(message, nullptr) << line;
  return message == nullptr ? Message() : *message;
}

std::string ErrorOf(absl::string_view line) {
  const Parsed parsed = Parse(line);
  const auto* error = std::get_if<UsageError>(&parsed);
  EXPECT_NE(error, nullptr) << line;
  if (error == nullptr) return "";
  EXPECT_EQ(error->message.find('\n'), std::string::npos) << error->message;
  return error->message;
}

TEST(Arguments, CommandsWithoutArguments) {
  RequestOf<v1::StatusRequest>("status");
  EXPECT_FALSE(RequestOf<v1::ListJobsRequest>("jobs").ended());
  EXPECT_TRUE(RequestOf<v1::ListJobsRequest>("jobs --ended").ended());
  RequestOf<v1::GetPlanRequest>("plan show");
  RequestOf<v1::ConfigRequest>("config show");
  RequestOf<v1::ReloadRequest>("config reload");
  const auto differs =
      RequestOf<v1::DisagreementRequest>("report-disagreement run1 --step 18446744073709551615 --point h:hash --rank 1 --rank 2");
  EXPECT_EQ(differs.ShortDebugString(), "run: \"run1\" step: 18446744073709551615 point: \"h:hash\" ranks: \"1\" ranks: \"2\"");
  EXPECT_THAT(ErrorOf("report-disagreement run1 --step 1 --point h"), HasSubstr("--rank"));
  EXPECT_EQ(RequestOf<v1::ListNicsRequest>("nic list").node(), "");
  EXPECT_EQ(RequestOf<v1::ListNicsRequest>("nic list n1").node(), "n1");
}

TEST(Arguments, Doctor) {
  const Parsed parsed = Parse("doctor --job --peers 2 --wait 90s --run_dir /r -o json");
  const auto* doctor = std::get_if<DoctorCommand>(&parsed);
  ASSERT_NE(doctor, nullptr);
  EXPECT_TRUE(doctor->job);
  EXPECT_TRUE(doctor->json);
  EXPECT_EQ(doctor->peers_max, 2u);
  EXPECT_EQ(doctor->wait_ns, 90'000'000'000);
  EXPECT_EQ(doctor->socket_path, "/r-control/r2ccd.sock");
  EXPECT_THAT(ErrorOf("doctor --wait soon"), HasSubstr("60s"));
  EXPECT_THAT(ErrorOf("doctor --server h:1"), HasSubstr("on the node"));
}

TEST(Arguments, CertificatesOfThisNode) {
  const Parsed parsed = Parse("certs issue n1 --install --dir /ca");
  const auto* certs = std::get_if<CertsCommand>(&parsed);
  ASSERT_NE(certs, nullptr);
  EXPECT_EQ(certs->out_directory, "/etc/r2cc/tls");
  EXPECT_EQ(certs->owner, "r2ccd");
  EXPECT_THAT(ErrorOf("certs issue alice --operator --install"), HasSubstr("belong to the person"));
}

TEST(Arguments, HelpShowsDefaultsNextToTheValuesName) {
  EXPECT_THAT(std::get<Help>(Parse("fail-nic --help")).text, HasSubstr("--for TIME [10m]"));
  EXPECT_THAT(std::get<Help>(Parse("doctor --help")).text, HasSubstr("--peers N [4]"));
  EXPECT_THAT(std::get<Help>(Parse("ready --help")).text, HasSubstr("--min-rails N [1]"));
}

TEST(Arguments, Ready) {
  const Parsed parsed = Parse("ready --min-rails 3 --run_dir /r -o json");
  const auto* ready = std::get_if<ReadyCommand>(&parsed);
  ASSERT_NE(ready, nullptr);
  EXPECT_EQ(ready->rails_min, 3u);
  EXPECT_TRUE(ready->json);
  EXPECT_EQ(ready->socket_path, "/r-control/r2ccd.sock");
  EXPECT_THAT(ErrorOf("ready --server h:1"), HasSubstr("this node"));
  EXPECT_EQ(std::get<ReadyCommand>(Parse("ready --npd")).rails_min, kEachRail);
  EXPECT_EQ(std::get<ReadyCommand>(Parse("ready --npd --min-rails 1")).rails_min, 1u);
}

TEST(Arguments, JobsAndBundles) {
  const auto report = RequestOf<JobReportCommand>("job report train-* --restart 10m --checkpoint 1h --json");
  EXPECT_EQ(report.job_glob, "train-*");
  EXPECT_EQ(report.restart_ns, 600'000'000'000);
  EXPECT_EQ(report.checkpoint_ns, 3'600'000'000'000);
  EXPECT_EQ(std::get<Invocation>(Parse("job report --json")).output, Output::kJson);
  EXPECT_THAT(ErrorOf("job report --restart never"), HasSubstr("--restart 'never'"));
  const Parsed env = Parse("job env slurm --job a --rails eth1 --library_dir /l --run_dir /r");
  ASSERT_NE(std::get_if<JobEnvCommand>(&env), nullptr);
  EXPECT_EQ(std::get<JobEnvCommand>(env).run_dir, "/r");
  ErrorOf("job env lsf");
  const Parsed bundle = Parse("support-bundle --out /o --state_dir /s");
  ASSERT_NE(std::get_if<BundleCommand>(&bundle), nullptr);
  EXPECT_EQ(std::get<BundleCommand>(bundle).state_dir, "/s");
}

TEST(Arguments, FiltersAndWhatIsForMany) {
  const auto list = RequestOf<v1::ListNicsRequest>("nic list --bad --state failed --state DRAINED --node rack3-*");
  EXPECT_TRUE(list.bad());
  EXPECT_EQ(list.node_glob(), "rack3-*");
  ASSERT_EQ(list.states_size(), 2);
  EXPECT_EQ(list.states(1), v1::DRAINED);
  EXPECT_THAT(ErrorOf("nic list --state broken"), AllOf(HasSubstr("broken"), HasSubstr("uncabled")));
  EXPECT_EQ(RequestOf<v1::StatusRequest>("status").nodes_max(), 20u);
  EXPECT_EQ(RequestOf<v1::StatusRequest>("status -o json").nodes_max(), 0u) << "for programs: all";
  EXPECT_EQ(RequestOf<v1::StatusRequest>("status --bad").nodes_max(), 0u);
  const auto rail = RequestOf<ActCommand>("nic drain rail0/*");
  EXPECT_EQ(rail.request.node(), "rail0");
  EXPECT_FALSE(rail.wait);
  EXPECT_TRUE(RequestOf<ActCommand>("nic drain n1/rail0 --wait").wait);
}

TEST(Arguments, NicActions) {
  const std::pair<const char*, v1::NicAction> cases[] = {
      {"nic drain n1/r2", v1::DRAIN}, {"nic undrain n1/r2", v1::UNDRAIN}, {"fail-nic n1/r2", v1::FAIL}, {"restore-nic n1/r2", v1::RESTORE}};
  for (const auto& [line, action] : cases) {
    const auto request = RequestOf<v1::NicActionRequest>(line);
    EXPECT_EQ(request.node(), "n1");
    EXPECT_EQ(request.nic(), "r2");
    EXPECT_EQ(request.action(), action) << line;
  }
  const auto weight = RequestOf<v1::NicActionRequest>("nic weight n1/r2 25%");
  EXPECT_EQ(weight.action(), v1::SET_WEIGHT);
  EXPECT_EQ(weight.weight_permille(), 250u);
}

TEST(Arguments, Events) {
  EXPECT_FALSE(RequestOf<v1::EventsRequest>("events").follow());
  const auto request = RequestOf<v1::EventsRequest>("events --follow --after 18446744073709551615");
  EXPECT_TRUE(request.follow());
  EXPECT_EQ(request.after_sequence(), 18446744073709551615u);
  for (const char* after : {"-1", "abc", "1.5", "18446744073709551616"})
    EXPECT_THAT(ErrorOf("events --after " + std::string(after)), AllOf(HasSubstr("--after"), HasSubstr(after)));
}

TEST(Arguments, EventsAreSifted) {
  const auto request = RequestOf<v1::EventsRequest>("events --nic n1/rail0 --kind drill --kind operator --last 5 --since 1970-01-03");
  EXPECT_EQ(request.node(), "n1");
  EXPECT_EQ(request.nic(), "rail0");
  EXPECT_EQ(request.kinds_size(), 2);
  EXPECT_EQ(request.last(), 5u);
  EXPECT_EQ(request.since_ns(), 2 * 86'400'000'000'000);
  EXPECT_EQ(RequestOf<v1::EventsRequest>("events --since 5s").since_ns(), 1'735'787'040'000'000'000);
  EXPECT_EQ(RequestOf<v1::EventsRequest>("events --node n1").node(), "n1");
  EXPECT_THAT(ErrorOf("events --since soon"), AllOf(HasSubstr("--since 'soon'"), HasSubstr("36h")));
  EXPECT_THAT(ErrorOf("events --nic rail0"), AllOf(HasSubstr("--nic"), HasSubstr("node1/rail0")));
  EXPECT_THAT(ErrorOf("events --nic n1/rail0 --node n2"), HasSubstr("none of --node n2"));
  for (const char* last : {"0", "-1", "1000001"}) {
    EXPECT_THAT(ErrorOf("events --last " + std::string(last)), AllOf(HasSubstr("--last"), HasSubstr("1 to 1000000"))) << last;
    EXPECT_LT(ErrorOf("events --last " + std::string(last)).size(), 120u) << "no number of 308 digits";
  }
  EXPECT_THAT(ErrorOf("events --kind typo"), AllOf(HasSubstr("'typo' is none of daemon-started, "), HasSubstr("stranger")));
}

TEST(Arguments, ANodeIsForgotten) {
  EXPECT_EQ(RequestOf<v1::ForgetNodeRequest>("node forget n7").node(), "n7");
  EXPECT_THAT(ErrorOf("node forget"), HasSubstr("NODE"));
  EXPECT_THAT(ErrorOf("node"), HasSubstr("forget"));
}

TEST(Arguments, EveryDrillHasAnEnd) {
  EXPECT_EQ(RequestOf<v1::NicActionRequest>("fail-nic n1/r2").drill_ns(), 600'000'000'000);
  EXPECT_EQ(RequestOf<v1::NicActionRequest>("fail-nic n1/r2 --for 90s").drill_ns(), 90'000'000'000);
  for (const char* wrong : {"0", "25h", "10", "soon"})
    EXPECT_EQ(ErrorOf("fail-nic n1/r2 --for " + std::string(wrong)),
              "--for '" + std::string(wrong) + "' is not how long a drill may last: 1s to 24h, such as 90s, 10m or 1h30m");
}

TEST(Arguments, Explanations) {
  const auto why = RequestOf<v1::ExplainNicRequest>("nic why n1/rail2");
  EXPECT_EQ(why.node(), "n1");
  EXPECT_EQ(why.nic(), "rail2");
  EXPECT_EQ(RequestOf<v1::ProbePathsRequest>("path probe n0 n1").peer(), "n1");
  EXPECT_EQ(RequestOf<v1::ProbePathsRequest>("path probe n0").peer(), "");
  RequestOf<v1::ExplainPlanRequest>("plan why");
  EXPECT_THAT(ErrorOf("nic why n1"), HasSubstr("'n1'"));
  EXPECT_THAT(ErrorOf("path probe"), HasSubstr("FROM"));
  EXPECT_THAT(ErrorOf("path"), HasSubstr("probe"));
}

TEST(Arguments, Watch) {
  RequestOf<HealthCommand>("health");
  EXPECT_EQ(RequestOf<WatchCommand>("watch").interval_ms, 1000);
  EXPECT_EQ(RequestOf<WatchCommand>("watch --interval 0.25 --count 3").interval_ms, 250);
  EXPECT_EQ(RequestOf<WatchCommand>("watch --interval 0.25 --count 3").count, 3);
  EXPECT_THAT(ErrorOf("watch --interval 0"), HasSubstr("--interval"));
  EXPECT_THAT(ErrorOf("watch -o json"), HasSubstr("events --follow"));
}

TEST(Arguments, GlobalFlagsStandAnywhere) {
  for (const char* line : {"-o json --run_dir /x status", "status -o json --run_dir /x", "status --output=json --run_dir=/x"}) {
    const Parsed parsed = Parse(line);
    ASSERT_TRUE(std::holds_alternative<Invocation>(parsed)) << line;
    EXPECT_EQ(std::get<Invocation>(parsed).output, Output::kJson);
    EXPECT_EQ(std::get<Invocation>(parsed).socket_path, "/x-control/r2ccd.sock");
  }
  EXPECT_EQ(std::get<Invocation>(Parse("status")).output, Output::kTable);
  EXPECT_EQ(std::get<Invocation>(Parse("status")).socket_path, "/run/r2cc-control/r2ccd.sock");
  EXPECT_EQ(std::get<Invocation>(Parse("status --run_dir /x --socket /y/z.sock")).socket_path, "/y/z.sock");
}

TEST(Arguments, HelpIsAboutTheCommandAskedFor) {
  ASSERT_TRUE(std::holds_alternative<Help>(Parse("--help")));
  EXPECT_THAT(std::get<Help>(Parse("--help")).text, AllOf(HasSubstr("fail-nic"), HasSubstr("Exit codes")));
  EXPECT_THAT(std::get<Help>(Parse("nic weight --help")).text, AllOf(HasSubstr("WEIGHT"), HasSubstr("--run_dir")));
}

TEST(Arguments, ErrorsNameTheThingAndTheWayOut) {
  EXPECT_THAT(ErrorOf(""), AllOf(HasSubstr("needs a command"), HasSubstr("status")));
  EXPECT_THAT(ErrorOf("nic"), AllOf(HasSubstr("needs a command"), HasSubstr("drain")));
  EXPECT_THAT(ErrorOf("statsu"), AllOf(HasSubstr("'statsu'"), HasSubstr("'status'")));
  EXPECT_THAT(ErrorOf("nic drian n0/r0"), AllOf(HasSubstr("'nic drian'"), HasSubstr("'drain'")));
  EXPECT_EQ(std::get<Help>(Parse("help")).text, std::get<Help>(Parse("--help")).text);
  EXPECT_EQ(std::get<Help>(Parse("version")).text, std::get<Help>(Parse("--version")).text);
  EXPECT_THAT(ErrorOf("teapot"), AllOf(HasSubstr("'teapot'"), HasSubstr("one of status, health, nic")));
  EXPECT_THAT(ErrorOf("events --folow"), AllOf(HasSubstr("'--folow'"), HasSubstr("'--follow'")));
  EXPECT_THAT(ErrorOf("status --bogus=1"), HasSubstr("'--bogus'"));
  EXPECT_THAT(ErrorOf("status extra"), HasSubstr("'extra'"));
  EXPECT_THAT(ErrorOf("nic drain"), HasSubstr("NODE/NIC"));
  EXPECT_THAT(ErrorOf("nic drain n0"), HasSubstr("'n0'"));
  EXPECT_THAT(ErrorOf("nic weight n0/r0"), HasSubstr("WEIGHT"));
  EXPECT_THAT(ErrorOf("nic weight n0/r0 50"), HasSubstr("'50'"));
  EXPECT_THAT(ErrorOf("nic weight n0/r0 -0.5"), HasSubstr("'-0.5'"));
  EXPECT_THAT(ErrorOf("status -o xml"), AllOf(HasSubstr("xml"), HasSubstr("table")));
  EXPECT_THAT(ErrorOf("status --socket"), HasSubstr("--socket"));
}

TEST(ArgumentsTest, PlanSimulate) {
  const Parsed parsed = Parse("plan simulate --nodes 8 --rails 4 --lose n0:2 --lose n3:1 --lose n0:1 --size 1GiB --rate 25Gbit/s -o json");
  const auto* simulation = std::get_if<Simulation>(&parsed);
  ASSERT_NE(simulation, nullptr);
  EXPECT_EQ(simulation->output, Output::kJson);
  EXPECT_EQ(simulation->command.lost, (std::vector<uint32_t>{3, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(simulation->command.size_bytes, 1u << 30);
  EXPECT_EQ(simulation->command.rail_bits_per_s, 25'000'000'000u);
  EXPECT_DOUBLE_EQ(simulation->command.step_latency_s, 1e-6);
  EXPECT_EQ(simulation->command.plot_path, "");
}

TEST(ArgumentsTest, PlanSimulateReportsWhatIsWrong) {
  const std::string rest = " --nodes 8 --rails 4 --size 1GiB";
  EXPECT_THAT(ErrorOf("plan simulate --lose n0:4" + rest), AllOf(HasSubstr("n0 without a rail"), HasSubstr("at most 3")));
  EXPECT_THAT(ErrorOf("plan simulate --lose n0:2 --lose n0:2" + rest), HasSubstr("n0 without a rail"));
  EXPECT_THAT(ErrorOf("plan simulate --lose n8:1" + rest), HasSubstr("n0 to n7"));
  for (const char* bad : {"n0", "0:1", "n:1", "n0:x", "n0:-1", ":", "n99999999999:1"})
    EXPECT_THAT(ErrorOf(absl::StrCat("plan simulate --lose ", bad, rest)), HasSubstr(bad));
  EXPECT_THAT(ErrorOf("plan simulate --nodes 1 --rails 4 --size 1GiB"), HasSubstr("--nodes 1"));
  EXPECT_THAT(ErrorOf("plan simulate --nodes 8 --rails 65 --size 1GiB"), HasSubstr("--rails 65"));
  EXPECT_THAT(ErrorOf("plan simulate --nodes 8 --rails 4 --size 1Gib"), HasSubstr("--size '1Gib'"));
  EXPECT_THAT(ErrorOf("plan simulate --rate fast" + rest), HasSubstr("--rate 'fast'"));
  EXPECT_THAT(ErrorOf("plan simulate --step_latency 5" + rest), HasSubstr("--step_latency '5'"));
  EXPECT_THAT(ErrorOf("plan simulate --nodes 8 --rails 4"), HasSubstr("--size"));
}

TEST(Arguments, ADrainMayBeForOneJob) {
  EXPECT_EQ(RequestOf<v1::NicActionRequest>("nic drain n0/rail0 --job train").job(), "train");
  EXPECT_EQ(RequestOf<v1::NicActionRequest>("nic undrain n0/rail0 --job train").job(), "train");
  EXPECT_EQ(RequestOf<ActCommand>("nic drain rail0/* --job train --wait").request.job(), "train");
  EXPECT_THAT(ErrorOf("fail-nic n0/rail0 --job train"), HasSubstr("--job"));
}

TEST(Arguments, JobsAreSifted) {
  const auto request = RequestOf<v1::ListJobsRequest>("jobs --bad --job train-* --uid 0 --nic rail0 --node rack3-*");
  EXPECT_TRUE(request.bad());
  EXPECT_EQ(request.job_glob(), "train-*");
  EXPECT_TRUE(request.has_uid());
  EXPECT_EQ(request.nic(), "rail0");
  EXPECT_EQ(request.node_glob(), "rack3-*");
  EXPECT_FALSE(RequestOf<v1::ListJobsRequest>("jobs").has_uid());
  EXPECT_EQ(RequestOf<v1::ListJobsRequest>("jobs --uid root").uid(), 0u);
  EXPECT_THAT(ErrorOf("jobs --uid no-such-user"), AllOf(HasSubstr("--uid 'no-such-user'"), HasSubstr("user of this machine")));
}

TEST(Arguments, RequestsHaveTheirOptions) {
  EXPECT_EQ(RequestOf<WideNicsCommand>("nic list n0 -o wide").list.node(), "n0");
  EXPECT_EQ(RequestOf<HookCommand>("events --follow --kind job-hang --run /x").program, "/x");
  EXPECT_THAT(ErrorOf("events --run /x"), HasSubstr("--run is for --follow"));
  const auto saved = RequestOf<SavedCommand>("report --since 1h --here --restart 10m");
  EXPECT_EQ(saved.since_ns, (1'735'787'045 - 3600) * int64_t{1'000'000'000});
  EXPECT_TRUE(saved.only_here);
  EXPECT_EQ(saved.restart_ns, 600 * int64_t{1'000'000'000});
  EXPECT_EQ(RequestOf<SavedCommand>("report").since_ns, (1'735'787'045 - 30 * 24 * 3600) * int64_t{1'000'000'000});
  EXPECT_THAT(ErrorOf("report --since never"), HasSubstr("--since"));
  EXPECT_EQ(std::get<HealthEventsCommand>(Parse("health-events --nvsentinel /s --node k")).node, "k");
  EXPECT_THAT(ErrorOf("health-events"), HasSubstr("--nvsentinel"));
  EXPECT_EQ(std::get<ConditionsCommand>(Parse("conditions")).api_server, "kubernetes.default.svc:443");
  EXPECT_EQ(std::get<ConditionsCommand>(Parse("conditions --server n0:7460 --certs /c --account /a")).server, "n0:7460");
  EXPECT_EQ(std::get<SuggestCommand>(Parse("config suggest --run_dir /r")).socket_path, "/r-control/r2ccd.sock");
}

}  // namespace
}  // namespace r2cc::client
