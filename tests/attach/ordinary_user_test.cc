// A job of uid 1000 and r2ccd of root: it attaches, sees every verdict, and finds the daemon again; also where the run directory is mounted
// read-only, as in a pod.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/program/r2ccd_rig.h"
#include "netplugin/attach/attach_client.h"
#include "netplugin/attach/attach_packets.h"

namespace r2cc::daemon {
namespace {

constexpr uid_t kUser = 1000;
constexpr gid_t kGroup = 1000;
// An operator may restart the daemon under a running job.
constexpr Nanos kBackMax = 3 * kNanosPerSecond;

// A process of kUser with the plugin's end of the attach socket, polled as the plugin's I/O thread does. What it sees is in a file.
class UserProcess {
 public:
  // `mounted`: the process sees `run_dir` there, mounted read-only; empty: as it is.
  UserProcess(const std::string& run_dir, const std::string& address, const std::string& mounted, const std::string& report)
      : report_(report) {
    pid_ = fork();
    if (pid_ == 0) Run(run_dir, address, mounted, report);
  }
  ~UserProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  UserProcess(const UserProcess&) = delete;
  UserProcess& operator=(const UserProcess&) = delete;

  bool Prints(const std::string& line, Nanos patience = kPatience) const {
    return WaitUntil([&] { return ReadFile(report_).find(line + "\n") != std::string::npos; }, patience);
  }
  std::string report() const { return ReadFile(report_); }
  pid_t pid() const { return pid_; }

 private:
  [[noreturn]] static void Run(const std::string& run_dir, const std::string& address, const std::string& mounted,
                               const std::string& report) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open(report.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    const auto print = [&](const std::string& line) { return write(out, (line + "\n").data(), line.size() + 1) > 0; };
    const auto fail = [&](const std::string& what) {
      print(what + ": " + std::strerror(errno));
      _exit(1);
    };
    std::string seen = run_dir;
    if (!mounted.empty()) {
      seen = mounted;
      if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount(run_dir.c_str(), seen.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
          mount(nullptr, seen.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
        fail("cannot mount");
    }
    if (setgroups(0, nullptr) != 0 || setresgid(kGroup, kGroup, kGroup) != 0 || setresuid(kUser, kUser, kUser) != 0)
      fail("cannot become another user");
    if (!mounted.empty() && (open((seen + "/x").c_str(), O_WRONLY | O_CREAT, 0600) >= 0 || errno != EROFS))
      fail("the mount is not read-only");

    net::Rail rail;
    rail.name = address;
    net::AttachClient client(seen + "/attach.sock", net::MakeAttachRequest("train", getpid(), 4711, {rail}, "0.9"),
                             [&](net::LogLevel, const std::string& line) { print(line); });
    uint64_t attached = 0;
    int weight = -1;
    for (;;) {
      const Nanos now = Now();
      client.Poll(now);
      if (client.attached() && std::exchange(attached, client.attach_count()) != client.attach_count())
        print("attached " + std::to_string(attached) + " as " + client.reply().nics[0]);
      const plan::PageCopy* const page = client.page(now);
      const plan::PageEntry* const entry = page == nullptr ? nullptr : page->Find(Fnv1a64("n0"), Fnv1a64("rail0"));
      const int sees = entry == nullptr ? -1 : entry->weight_permille;
      if (std::exchange(weight, sees) != sees) print("weight " + std::to_string(sees));
      // As the plugin does: woken by the daemon, and a few times a second anyway.
      pollfd doorbell{client.fd(), POLLIN, 0};
      poll(&doorbell, 1, 10);
    }
  }

  const std::string report_;
  pid_t pid_;
};

class OrdinaryUserTest : public R2ccdTest {
 protected:
  void SetUp() override {
    R2ccdTest::SetUp();
    if (geteuid() != 0) GTEST_SKIP() << "needs root: becomes another user";
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
    mounted_ = folder_ + "/mounted";
    ASSERT_EQ(mkdir(mounted_.c_str(), 0755), 0);
  }

  std::unique_ptr<UserProcess> Start(const std::string& mounted) {
    return std::make_unique<UserProcess>(RunDir(0), Address(0, 0), mounted, folder_ + "/report");
  }
  std::vector<v1::Job> Jobs() {
    grpc::ClientContext context;
    v1::ListJobsReply reply;
    EXPECT_TRUE(Control(0)->ListJobs(&context, v1::ListJobsRequest(), &reply).ok());
    return {reply.jobs().begin(), reply.jobs().end()};
  }
  // Kills the daemon and starts it again; the job is back within kBackMax of that.
  void Restart(const UserProcess& job, int attached) {
    daemons_[0]->Signal(SIGKILL);
    daemons_[0]->Wait();
    StartDaemon(0);
    const Nanos begin = Now();
    EXPECT_TRUE(job.Prints("attached " + std::to_string(attached) + " as rail0", kBackMax)) << job.report();
    std::printf("attached again %.2f s after the daemon served\n", static_cast<double>(Now() - begin) / kNanosPerSecond);
  }

  std::string mounted_;
};

TEST_F(OrdinaryUserTest, AttachesAndIsShown) {
  StartDaemon(0);
  struct stat mode {};
  ASSERT_EQ(stat(RunDir(0).c_str(), &mode), 0);
  EXPECT_EQ(mode.st_mode & 0777, 0755u);
  const auto job = Start("");
  ASSERT_TRUE(job->Prints("attached 1 as rail0")) << job->report();
  EXPECT_TRUE(job->Prints("weight 1000")) << job->report();
  const auto jobs = Jobs();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].uid(), kUser);
  EXPECT_EQ(jobs[0].pid(), job->pid());
  EXPECT_FALSE(jobs[0].pid_claimed());
  EXPECT_EQ(Act(0, "n0", "rail0", v1::SET_WEIGHT, 300), "");
  EXPECT_TRUE(job->Prints("weight 300")) << job->report();
  Restart(*job, 2);
}

TEST_F(OrdinaryUserTest, AttachesThroughAReadOnlyMountAndOverRestarts) {
  StartDaemon(0);
  const auto job = Start(mounted_);
  ASSERT_TRUE(job->Prints("attached 1 as rail0")) << job->report();
  EXPECT_TRUE(job->Prints("weight 1000")) << job->report();
  for (int attached = 2; attached <= 3; ++attached) Restart(*job, attached);
}

TEST_F(OrdinaryUserTest, MayBeKeptOut) {
  WriteConfig(0, "attach { uids: 1001 gids: 4242 }\n");
  StartDaemon(0);
  const auto job = Start("");
  ASSERT_TRUE(job->Prints("R2CC: r2ccd at " + RunDir(0) +
                          "/attach.sock: it refused: uid 1000 may not attach: see attach in r2ccd's configuration; trying again"))
      << job->report();
  EXPECT_TRUE(Jobs().empty());
  EXPECT_NE(daemons_[0]->log().find("a job was refused uid=1000 pid=" + std::to_string(job->pid())), std::string::npos)
      << daemons_[0]->log();
  EXPECT_TRUE(Attach(0)->attached()) << "root may";
}

TEST_F(OrdinaryUserTest, MayBeKeptOutAndLetInWhileTheDaemonRuns) {
  const auto reload = [&](const std::string& more) {
    WriteConfig(0, more);
    grpc::ClientContext context;
    v1::ReloadReply reply;
    const grpc::Status status = Control(0)->Reload(&context, v1::ReloadRequest(), &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(reply.state().needs_restart_size(), 0) << reply.DebugString();
    return reply.applied_size() == 1 ? reply.applied(0) : "";
  };
  StartDaemon(0);
  const auto before = Start("");
  ASSERT_TRUE(before->Prints("attached 1 as rail0")) << before->report();
  EXPECT_EQ(reload("attach { uids: 1001 }\n"), "attach: the users whose jobs may attach");
  const UserProcess job(RunDir(0), Address(0, 0), "", folder_ + "/second");
  ASSERT_TRUE(job.Prints("R2CC: r2ccd at " + RunDir(0) +
                         "/attach.sock: it refused: uid 1000 may not attach: see attach in r2ccd's configuration; trying again"))
      << job.report();
  EXPECT_EQ(Jobs().size(), 1u) << "who is attached stays";
  EXPECT_EQ(reload("attach { uids: 1000 }\n"), "attach: the users whose jobs may attach");
  EXPECT_TRUE(job.Prints("attached 1 as rail0")) << job.report();
  EXPECT_EQ(Jobs().size(), 2u);
}

TEST_F(OrdinaryUserTest, LogsOnceThatThereIsNoDaemon) {
  ASSERT_EQ(mkdir(RunDir(0).c_str(), 0755), 0);
  const auto job = Start("");
  const std::string line =
      "R2CC: no r2ccd at " + RunDir(0) + "/attach.sock (No such file or directory): the job runs without it and tries again";
  ASSERT_TRUE(WaitUntil([&] { return job->report().find(line) != std::string::npos; })) << job->report();
  StartDaemon(0);
  ASSERT_TRUE(job->Prints("attached 1 as rail0", kBackMax)) << job->report();
}

}  // namespace
}  // namespace r2cc::daemon
