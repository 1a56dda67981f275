#include "daemon/io/process_origin.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace r2cc::daemon {
namespace {

constexpr char kMapOfTheMachine[] = "         0          0 4294967295\n";
ProcessView MachineView() {
  return {"Name:\tr2ccctl\nNSpid:\t4711\nThreads:\t1\n", kMapOfTheMachine,
          "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n22 21 0:20 / /proc rw - proc proc rw\n"};
}

TEST(ProcessOrigin, AContainerIsKnownByAnyOfItsNamespaces) {
  const ProcessView own = MachineView();
  EXPECT_FALSE(IsContained(own, own));
  ProcessView other = own;
  other.mountinfo = "400 399 8:1 / / ro - ext4 /dev/sda1 rw\n401 400 0:99 / /tmp rw - tmpfs tmpfs rw\n";
  EXPECT_FALSE(IsContained(own, other)) << "a service with mounts of its own and the machine's root";
  other.mountinfo = "400 399 0:50 / / rw - overlay overlay rw\n";
  EXPECT_TRUE(IsContained(own, other)) << "a container that shares the machine's pids and users";
  other.mountinfo = "400 399 8:1 /var/lib/machines/a / rw - ext4 /dev/sda1 rw\n";
  EXPECT_TRUE(IsContained(own, other));
  other = own;
  other.status = "Name:\tr2ccctl\nNSpid:\t4711\t1\n";
  EXPECT_TRUE(IsContained(own, other));
  other = own;
  other.uid_map = "         0     100000      65536\n";
  EXPECT_TRUE(IsContained(own, other));
  EXPECT_TRUE(IsContained(own, ProcessView())) << "hidden, or ended: nobody knows where it was";
}

TEST(ProcessOrigin, ThisProcessAndOneOfAnotherUser) {
  const ProcessView own = ViewProcess(0);
  EXPECT_FALSE(own.status.empty());
  EXPECT_FALSE(IsContained(own, ViewProcess(getpid())));
  EXPECT_TRUE(IsContained(own, ViewProcess(0x3fffffff)));
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t other = fork();
  if (other == 0) {
    char byte;
    close(pipe_ends[1]);
    (void)!read(pipe_ends[0], &byte, 1);
    _exit(0);
  }
  EXPECT_FALSE(IsContained(own, ViewProcess(other)));
  close(pipe_ends[1]);
  close(pipe_ends[0]);
  waitpid(other, nullptr, 0);
}

TEST(ProcessOrigin, OneTenantHoweverItDividesItsGroups) {
  for (const auto& [path, tenant] : {
           std::pair{"/user.slice/user-1000.slice/session-3.scope", "/user.slice/user-1000.slice"},
           {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-0a1b.scope/container", "/user.slice/user-1000.slice"},
           {"/system.slice/docker-0123456789abcdef0123456789abcdef.scope/mine/3",
            "/system.slice/docker-0123456789abcdef0123456789abcdef.scope"},
           {"/docker/0123456789abcdef0123456789abcdef/x", "/docker/0123456789abcdef0123456789abcdef"},
           {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a2b3c4d_1111_2222_3333_444455556666.slice/"
            "cri-containerd-f.scope",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a2b3c4d_1111_2222_3333_444455556666.slice"},
           {"/kubepods/besteffort/pod1a2b3c4d-1111-2222-3333-444455556666/abc",
            "/kubepods/besteffort/pod1a2b3c4d-1111-2222-3333-444455556666"},
           {"/system.slice/slurmstepd.scope/job_12/step_0/user/task_3", "/system.slice/slurmstepd.scope/job_12"},
           {"/system.slice/cron.service", "/system.slice/cron.service"},
           {"/", ""},
       }) {
    EXPECT_EQ(TenantOf("0::" + std::string(path) + "\n"), tenant);
    EXPECT_EQ(TenantOf("1:name=systemd:" + std::string(path) + "\n0::/\n"), tenant) << "version 1";
  }
  EXPECT_EQ(TenantOf(""), "");
}

}  // namespace
}  // namespace r2cc::daemon
