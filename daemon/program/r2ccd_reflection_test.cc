// A client of gRPC that has none of our .proto files, and the control socket.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

class ReflectionTest : public R2ccdTest {
 protected:
  // The exit code of the client, and all that it prints. `before`: words that start it.
  std::string Client(const std::string& version, const std::string& before = "") {
    // A place where another user can read it.
    const std::string client = folder_ + "/client.py";
    std::filesystem::copy_file("daemon/program/reflection_client.py", client, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::permissions(client, std::filesystem::perms(0644));
    const std::string command = before + "/usr/bin/python3 " + client + " " + RunDir(0) + "/r2ccd.sock " + version + " 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    std::string output;
    char text[4096];
    while (pipe != nullptr && fgets(text, sizeof(text), pipe) != nullptr) output += text;
    return std::to_string(WEXITSTATUS(pclose(pipe))) + " " + output;
  }
  static bool HasClient() {
    return std::filesystem::exists("/usr/share/grpc-proto/grpc/reflection") && std::system("/usr/bin/python3 -c 'import grpc'") == 0;
  }
};

TEST_F(ReflectionTest, AClientWithoutOurFilesLearnsThemAndCalls) {
  if (!HasClient()) GTEST_SKIP() << "needs grpc: grpc-proto and python3-grpcio";
  StartDaemon(0);
  EXPECT_EQ(Client("v1"), "0 n0\n");
  EXPECT_EQ(Client("v1alpha"), "0 n0\n");
}

TEST_F(ReflectionTest, ACallerWithoutViewLearnsNothing) {
  if (!HasClient()) GTEST_SKIP() << "needs grpc: grpc-proto and python3-grpcio";
  if (geteuid() != 0) GTEST_SKIP() << "needs root: asks as another user";
  const std::string nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
  WriteConfig(0, "grants { roles: VIEW users: \"65534\" }\n");
  LetUsersIn(0);
  StartDaemon(0);
  EXPECT_EQ(Client("v1", nobody), "0 n0\n");
  WriteConfig(0, "grants { roles: VIEW users: \"4711\" }\n");
  daemons_[0]->Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return Client("v1", nobody).starts_with("1 PERMISSION_DENIED"); })) << Client("v1", nobody);
  EXPECT_THAT(Client("v1", nobody), HasSubstr("VIEW"));
}

}  // namespace
}  // namespace r2cc::daemon
