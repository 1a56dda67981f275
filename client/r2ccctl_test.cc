// The real r2ccctl as a process, against a Control service of this test's own on a Unix socket: what goes out, what comes back,
// exit codes, and the one line of an error.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "proto/r2cc.grpc.pb.h"

extern char** environ;

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Answers from `nodes`; knows n0/rail0 alone.
class TestControl final : public v1::Control::Service {
 public:
  v1::NicActionRequest last_action() {
    std::lock_guard lock(mutex_);
    return last_action_;
  }

 private:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::StatusRequest*, v1::StatusReply* reply) override {
    reply->set_node("n0");
    reply->set_word(v1::NODE_HEALTHY);
    v1::PeerStatus* const peer = reply->add_peers();
    peer->set_node("n1");
    peer->set_address("10.200.0.2:7460");
    return grpc::Status::OK;
  }
  grpc::Status ListNics(grpc::ServerContext*, const v1::ListNicsRequest* request, v1::ListNicsReply* reply) override {
    if ((!request->node().empty() && request->node() != "n0") || request->node_glob() == "typo") return grpc::Status::OK;
    if (request->node_glob() == "many*") return ManyNics(*request, reply);
    v1::NodeView* node = reply->add_nodes();
    node->set_node("n0");
    v1::NicView* nic = node->add_nics();
    nic->set_name("rail0");
    nic->set_state(v1::HEALTHY);
    nic->set_operator_weight_permille(1000);
    return grpc::Status::OK;
  }
  // Three pages of one node each.
  static grpc::Status ManyNics(const v1::ListNicsRequest& request, v1::ListNicsReply* reply) {
    const int page = request.after_node().empty() ? 0 : request.after_node().back() - '0' + 1;
    v1::NodeView* node = reply->add_nodes();
    node->set_node("many" + std::to_string(page));
    node->add_nics()->set_name("rail0");
    if (page == 0) reply->mutable_summary()->add_nodes()->set_nodes(3);
    if (page < 2) reply->set_next_after(node->node());
    return grpc::Status::OK;
  }
  grpc::Status ActOnNic(grpc::ServerContext*, const v1::NicActionRequest* request, v1::NicActionReply* reply) override {
    if (request->node() != "n0" || request->nic() != "rail0")
      return {grpc::StatusCode::NOT_FOUND, "unknown NIC " + request->node() + "/" + request->nic() + "; known: n0/rail0\nsecond line"};
    {
      std::lock_guard lock(mutex_);
      last_action_ = *request;
    }
    reply->mutable_nic()->set_name("rail0");
    reply->mutable_nic()->set_state(request->action() == v1::FAIL ? v1::FAILED : v1::HEALTHY);
    reply->mutable_nic()->set_operator_weight_permille(request->weight_permille());
    reply->set_changed(true);
    return grpc::Status::OK;
  }
  grpc::Status Events(grpc::ServerContext*, const v1::EventsRequest* request, grpc::ServerWriter<v1::Event>* writer) override {
    const int stream = ++event_streams_;
    const uint64_t last = stream == 1 ? 3 : 5;
    for (uint64_t sequence = request->after_sequence() + 1; sequence <= last; ++sequence) {
      v1::Event event;
      event.set_instance(7);
      event.set_sequence(sequence);
      event.set_node("n0");
      event.set_kind("link-up");
      writer->Write(event);
    }
    if (!request->follow()) return grpc::Status::OK;
    // The daemon is restarted, and then the operator loses a role.
    if (stream == 1) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "shutting down");
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "uid 0 does not have the role VIEW");
  }
  grpc::Status ReportJobs(grpc::ServerContext*, const v1::ReportJobsRequest*, v1::ReportJobsReply*) override { return grpc::Status::OK; }
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*, v1::ListJobsReply* reply) override {
    reply->add_jobs()->set_pid(7);
    return grpc::Status::OK;
  }
  grpc::Status ExplainNic(grpc::ServerContext*, const v1::ExplainNicRequest* request, v1::ExplainNicReply* reply) override {
    reply->set_node(request->node());
    reply->mutable_nic()->set_name(request->nic());
    reply->set_verdict("port");
    reply->set_verdict_text("port of n0/rail0");
    return grpc::Status::OK;
  }
  grpc::Status ProbePaths(grpc::ServerContext*, const v1::ProbePathsRequest* request, v1::ProbePathsReply* reply) override {
    reply->set_node(request->node());
    reply->set_peer(request->peer());
    return grpc::Status::OK;
  }
  grpc::Status ExplainPlan(grpc::ServerContext*, const v1::ExplainPlanRequest*, v1::ExplainPlanReply* reply) override {
    reply->add_reasons()->set_reason("the operator's word");
    return grpc::Status::OK;
  }
  // GetPlan stays unimplemented: a daemon of an older release.

  std::mutex mutex_;
  std::atomic<int> event_streams_{0};
  v1::NicActionRequest last_action_;
};

class R2ccctl : public testing::Test {
 protected:
  void SetUp() override {
    program_ = std::filesystem::absolute("client/r2ccctl");
    ASSERT_TRUE(std::filesystem::exists(program_)) << program_;
    // TEST_TMPDIR may be longer than a socket's path may be: it is named relative to the folder.
    start_ = std::filesystem::current_path();
    std::filesystem::current_path(testing::TempDir());
    grpc::ServerBuilder builder;
    std::filesystem::create_directory(".-control");
    builder.AddListeningPort("unix:.-control/r2ccd.sock", grpc::InsecureServerCredentials());
    // As 0.2.0 does, and by a link each later release.
    builder.AddListeningPort("unix:r2ccd.sock", grpc::InsecureServerCredentials());
    builder.RegisterService(&control_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void TearDown() override {
    if (server_ != nullptr) server_->Shutdown();
    std::filesystem::current_path(start_);
  }

  Outcome Run(const std::string& arguments) {
    std::vector<std::string> words = absl::StrSplit(arguments, ' ', absl::SkipEmpty());
    words.insert(words.begin(), program_);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t pid = -1;
    const int error = posix_spawn(&pid, program_.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (error != 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) {
      ADD_FAILURE() << "r2ccctl " << arguments << " did not run to its end";
      return {};
    }
    return {WEXITSTATUS(status), ReadFile("out"), ReadFile("err")};
  }

  // The command is refused with `exit_code`: nothing on standard output and one line on standard error.
  std::string Refused(const std::string& arguments, int exit_code) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("r2ccctl: "));
    return outcome.err;
  }

  template <typename Message>
  Message Json(const std::string& arguments) {
    const Outcome outcome = Run(arguments + " -o json --run_dir .");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    Message message;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(outcome.out, &message).ok()) << outcome.out;
    return message;
  }

  std::string program_;
  std::filesystem::path start_;
  TestControl control_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(R2ccctl, ReadyIsOneLineOnStandardOutputAndAnExitCode) {
  const auto expect = [](const Outcome& outcome, int exit_code, const std::string& line) {
    EXPECT_EQ(outcome.exit_code, exit_code);
    EXPECT_EQ(outcome.err, "");
    EXPECT_THAT(outcome.out, StartsWith(line));
    EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1) << outcome.out;
  };
  expect(Run("ready --run_dir ."), 0, "ready: n0 has 1 of 1 rails\n");
  expect(Run("ready --min-rails 2 --run_dir ."), 1, "not ready: n0 has 1 of 1 rails, needs 2\n");
  expect(Run("ready --run_dir /nowhere"), 2, "cannot tell: r2ccd is not running: there is no /nowhere-control/r2ccd.sock");
}

TEST_F(R2ccctl, PrintsTablesWithoutColourIntoAFile) {
  const Outcome status = Run("status --run_dir .");
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_THAT(status.out, AllOf(HasSubstr("Healthy"), Not(HasSubstr("\033"))));
  const Outcome nics = Run("nic list n0 --socket r2ccd.sock");
  EXPECT_EQ(nics.exit_code, 0) << nics.err;
  EXPECT_THAT(nics.out, HasSubstr("n0/rail0  HEALTHY"));
}

TEST_F(R2ccctl, FindsADaemonOfTheReleaseBeforeInTheRunDirectory) {
  std::filesystem::remove_all(".-control");
  EXPECT_EQ(Run("status --run_dir .").exit_code, 0);
  server_.reset();
  std::filesystem::remove("r2ccd.sock");
  EXPECT_THAT(Refused("status --run_dir .", 1), HasSubstr("there is no .-control/r2ccd.sock")) << "where the next one will be";
}

TEST_F(R2ccctl, PrintsJson) {
  EXPECT_EQ(Json<v1::StatusReply>("status").node(), "n0");
  EXPECT_EQ(Json<v1::ListNicsReply>("nic list").nodes(0).nics(0).state(), v1::HEALTHY);
  EXPECT_EQ(Json<v1::ListJobsReply>("jobs").jobs(0).pid(), 7);
  EXPECT_TRUE(Json<v1::NicActionReply>("fail-nic n0/rail0").changed());
}

TEST_F(R2ccctl, PrintsEventsOneJsonObjectALine) {
  const Outcome outcome = Run("events --after 1 -o json --run_dir .");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = absl::StrSplit(outcome.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u) << outcome.out;
  for (size_t i = 0; i < lines.size(); ++i) {
    v1::Event event;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(lines[i], &event).ok()) << lines[i];
    EXPECT_EQ(event.sequence(), i + 2);
  }
}

TEST_F(R2ccctl, Explains) {
  EXPECT_EQ(Json<v1::ExplainNicReply>("nic why n0/rail0").verdict(), "port");
  EXPECT_EQ(Json<v1::ProbePathsReply>("path probe n0 n1").peer(), "n1");
  EXPECT_EQ(Json<v1::ProbePathsReply>("path probe n0 10.200.0.2").peer(), "n1") << "as in a job's error";
  EXPECT_THAT(Run("path probe n0 10.9.9.9 --run_dir .").err, HasSubstr("r2ccd knows no node with the address 10.9.9.9"));
  const auto many = Json<v1::ListNicsReply>("nic list --node many*");
  ASSERT_EQ(many.nodes_size(), 3) << "all pages";
  EXPECT_EQ(many.nodes(2).node(), "many2");
  EXPECT_EQ(many.summary().nodes(0).nodes(), 3u);
  EXPECT_EQ(Json<v1::ExplainPlanReply>("plan why").reasons(0).reason(), "the operator's word");
  EXPECT_THAT(Run("nic why n0/rail0 --run_dir .").out, HasSubstr("verdict port of n0/rail0\n"));
  EXPECT_THAT(Run("path probe n0 n1 --run_dir .").out, HasSubstr("no rail of n0 is probed towards n1"));
}

TEST_F(R2ccctl, WatchesWithoutSteeringAFile) {
  const Outcome outcome = Run("watch --interval 0.1 --count 2 --run_dir .");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("\033")));
  const size_t first = outcome.out.find("n0/rail0  HEALTHY");
  ASSERT_NE(first, std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("n0/rail0  HEALTHY", first + 1), std::string::npos) << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("link-up"));
}

TEST_F(R2ccctl, FollowsEventsOverARestartOfTheDaemon) {
  const Outcome outcome = Run("events --follow -o json --run_dir .");
  EXPECT_EQ(outcome.exit_code, 1);
  for (const char* const number : {"1", "2", "3", "4", "5"})
    EXPECT_THAT(outcome.out, HasSubstr("\"sequence\":\"" + std::string(number) + "\"")) << "each once, from before and behind";
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 5);
  EXPECT_THAT(outcome.err, HasSubstr("role VIEW"));
  EXPECT_EQ(Run("events --kind typo --run_dir .").exit_code, 2);
}

TEST_F(R2ccctl, AMissingObjectIsAnError) {
  for (const auto& [command, words] : std::vector<std::pair<std::string, std::string>>{
           {"job report typo", "no job of this node has the name or run 'typo'"}, {"nic list --node typo", "no node's name fits 'typo'"}}) {
    const Outcome outcome = Run(command + " --run_dir .");
    EXPECT_EQ(outcome.exit_code, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(R2ccctl, SendsTheOperatorsRequest) {
  EXPECT_EQ(Run("nic weight n0/rail0 25% --run_dir .").exit_code, 0);
  EXPECT_EQ(control_.last_action().action(), v1::SET_WEIGHT);
  EXPECT_EQ(control_.last_action().weight_permille(), 250u);
  for (const auto& [command, action] : std::vector<std::pair<std::string, v1::NicAction>>{
           {"nic drain", v1::DRAIN}, {"nic undrain", v1::UNDRAIN}, {"fail-nic", v1::FAIL}, {"restore-nic", v1::RESTORE}}) {
    EXPECT_EQ(Run(command + " n0/rail0 --run_dir .").exit_code, 0) << command;
    EXPECT_EQ(control_.last_action().action(), action) << command;
  }
}

// Asks no daemon: there is none at the default socket.
TEST_F(R2ccctl, SimulatesPlans) {
  const std::string command = "plan simulate --nodes 8 --rails 8 --lose n0:2 --size 1GiB --socket nowhere.sock";
  const Outcome table = Run(command);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("lost: n0:2"), HasSubstr("\nchosen: "), HasSubstr("balance"), HasSubstr("TO BOUND")));
  const Outcome json = Run(command + " -o json --plot plan.svg");
  EXPECT_EQ(json.exit_code, 0) << json.err;
  google::protobuf::Struct answer;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json.out, &answer).ok()) << json.out;
  const auto& fields = answer.fields();
  EXPECT_GT(fields.at("bound_ratio").number_value(), 1);
  ASSERT_GT(fields.at("candidates").list_value().values_size(), 3);
  const auto& first = fields.at("candidates").list_value().values(0).struct_value().fields();
  EXPECT_EQ(first.at("schedule").string_value(), fields.at("chosen").string_value());
  for (const char* key : {"time_s", "ratio_to_ring", "ratio_to_bound"}) EXPECT_GT(first.at(key).number_value(), 0) << key;
  EXPECT_THAT(ReadFile("plan.svg"), AllOf(StartsWith("<svg"), HasSubstr("lower bound"), HasSubstr("</svg>")));
  EXPECT_THAT(Refused(command + " --plot no/such/folder/plan.svg", 1), HasSubstr("no/such/folder"));
  EXPECT_THAT(Refused(command + " --lose n9:1", 2), HasSubstr("n0 to n7"));
}

TEST_F(R2ccctl, PassesTheDaemonsRefusalOn) {
  EXPECT_EQ(Refused("nic drain n0/rail9 --run_dir .", 1), "r2ccctl: unknown NIC n0/rail9; known: n0/rail0\n");
  EXPECT_THAT(Refused("nic list n9 --run_dir .", 1), AllOf(HasSubstr("unknown node 'n9'"), HasSubstr("r2ccctl status")));
  EXPECT_THAT(Refused("plan show --run_dir .", 1), HasSubstr("too old"));
}

TEST_F(R2ccctl, BadUsageIsExitCodeTwoAndReachesNoDaemon) {
  EXPECT_THAT(Refused("statsu", 2), HasSubstr("'status'"));
  EXPECT_THAT(Refused("status --bogus", 2), HasSubstr("'--bogus'"));
  EXPECT_THAT(Refused("nic drain rail0 --run_dir .", 2), HasSubstr("'rail0'"));
  EXPECT_THAT(Refused("nic weight n0/rail0 1.5 --run_dir .", 2), HasSubstr("'1.5'"));
  EXPECT_EQ(control_.last_action().action(), v1::NIC_ACTION_UNSPECIFIED);
}

TEST_F(R2ccctl, NamesTheSocketOfADaemonThatIsNotThere) {
  EXPECT_THAT(Refused("status --run_dir ./nowhere", 1),
              AllOf(HasSubstr("./nowhere-control/r2ccd.sock"), HasSubstr("not running"), HasSubstr("r2ccd --run_dir=./nowhere")));
  // The remains of a killed daemon: a socket file on which nobody listens.
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "stale.sock"};
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(fd);
  EXPECT_THAT(Refused("status --socket stale.sock", 1), AllOf(HasSubstr("stale.sock"), HasSubstr("no process listens")));
  EXPECT_THAT(Refused("status --socket " + std::string(200, 'x'), 1), HasSubstr("200 bytes long"));
}

TEST_F(R2ccctl, AServerIsAHostAndAPort) {
  for (const char* server : {"127.0.0.1", "127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1:http", "[::1]", ":7460"})
    EXPECT_THAT(Refused(std::string("status --certs . --server ") + server, 1), HasSubstr("is no HOST:PORT, such as node0:7460"));
  EXPECT_THAT(Refused("status --certs . --server [::1]:7460", 1), HasSubstr("cannot read"));
}

TEST_F(R2ccctl, ReportsThatItsOutputCannotBeWritten) {
  const std::string command = program_ + " status --run_dir . > /dev/full 2> err";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 1);
  EXPECT_THAT(ReadFile("err"), HasSubstr("cannot write"));
}

}  // namespace
}  // namespace r2cc::client
