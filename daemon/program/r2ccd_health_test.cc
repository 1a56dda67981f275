// grpc.health.v1 of the real daemon: its answers, to each caller, and while the core is stuck.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

// HealthCheckResponse { status: ... } on the wire: field 1, a varint.
const std::string kServing = "\x08\x01";
const std::string kNotServing = "\x08\x02";

struct HealthAnswer {
  grpc::Status status;
  std::string bytes;
};

// As any client of the protocol asks for the server as a whole.
HealthAnswer Check(const std::string& target) {
  grpc::GenericStub stub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  const grpc::Slice no_service("");
  const grpc::ByteBuffer request(&no_service, 1);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::ByteBuffer reply;
  HealthAnswer answer;
  call->Finish(&reply, &answer.status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  grpc::Slice slice;
  if (answer.status.ok() && reply.DumpToSingleSlice(&slice).ok())
    answer.bytes.assign(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return answer;
}

// While it exists, one thread of another process does not run.
class StoppedThread {
 public:
  explicit StoppedThread(pid_t thread) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    tracer_ = fork();
    if (tracer_ == 0) {
      const bool stopped = ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) == 0 && ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) == 0 &&
                           waitpid(thread, nullptr, __WALL) == thread;
      if (stopped && write(ready[1], "1", 1) == 1) pause();
      _exit(1);
    }
    close(ready[1]);
    char byte;
    stopped_ = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
  }
  // The kernel lets go of what a tracer leaves behind.
  ~StoppedThread() {
    kill(tracer_, SIGKILL);
    waitpid(tracer_, nullptr, 0);
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;
  bool stopped() const { return stopped_; }

 private:
  pid_t tracer_;
  bool stopped_ = false;
};

class R2ccdHealthTest : public R2ccdTest {
 protected:
  R2ccdHealthTest() { nodes_ = 1; }
  std::string ControlTarget() const { return "unix:" + RunDir(0) + "/r2ccd.sock"; }
};

TEST_F(R2ccdHealthTest, TheControlSocketReportsThatItServes) {
  StartAll();
  const HealthAnswer answer = Check(ControlTarget());
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.bytes, kServing);
}

TEST_F(R2ccdHealthTest, AStuckCoreServesNobody) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: stops a thread of another process";
  StartAll();
  {
    // The core's alone, which is the first: gRPC's own threads go on and could go on reporting that all is well.
    const StoppedThread core(daemons_[0]->pid());
    ASSERT_TRUE(core.stopped());
    EXPECT_TRUE(WaitUntil([&] { return Check(ControlTarget()).bytes == kNotServing; }));
  }
  EXPECT_TRUE(WaitUntil([&] { return Check(ControlTarget()).bytes == kServing; }));
}

// A pod is restarted if the unit's watchdog would do so, and not because its core was slow for a second.
TEST_F(R2ccdHealthTest, AProbeMayGiveTheCoreTheTimeOfTheWatchdog) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: stops a thread of another process";
  StartAll();
  const std::string health = "client/r2ccctl --run_dir " + RunDir(0) + " health";
  auto core = std::make_unique<StoppedThread>(daemons_[0]->pid());
  ASSERT_TRUE(core->stopped());
  EXPECT_NE(std::system((health + " 2>/dev/null").c_str()), 0);
  EXPECT_NE(std::system((health + " --within 1.5 2>/dev/null").c_str()), 0);
  FILE* const patient = popen((health + " --within 60").c_str(), "r");
  ASSERT_NE(patient, nullptr);
  core.reset();
  char line[256] = {};
  EXPECT_NE(std::fgets(line, sizeof(line), patient), nullptr);
  EXPECT_EQ(pclose(patient), 0) << line;
  EXPECT_EQ(std::system((health + " > /dev/null").c_str()), 0);
}

// As on a machine that has too much to do: r2ccctl waits for its answer.
TEST_F(R2ccdHealthTest, ADaemonThatStandsStillForASecondIsWaitedFor) {
  StartAll();
  daemons_[0]->Signal(SIGSTOP);
  FILE* const status = popen(("client/r2ccctl --run_dir " + RunDir(0) + " status 2>&1").c_str(), "r");
  ASSERT_NE(status, nullptr);
  EXPECT_TRUE(WaitUntil([until = Now() + kNanosPerSecond] { return Now() >= until; }));
  daemons_[0]->Signal(SIGCONT);
  char line[256] = {};
  EXPECT_NE(std::fgets(line, sizeof(line), status), nullptr);
  EXPECT_EQ(pclose(status), 0) << line;
}

TEST_F(R2ccdHealthTest, ThePortOfTheOtherDaemonsDoesNotReportIt) {
  StartAll();
  const HealthAnswer answer = Check("ipv4:127.0.0.1:" + std::to_string(ports_[0]));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << answer.status.error_message();
}

}  // namespace
}  // namespace r2cc::daemon
