// Real daemons with a real etcd: it is there, it dies, it comes back; and one that refuses.
#include <gmock/gmock.h>

#include "daemon/r2ccd_rig.h"
#include "daemon/rpc/etcd_process.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

class R2ccdEtcdTest : public R2ccdTest {
 protected:
  void SetUp() override {
    if (access(kEtcdBinary, X_OK) != 0) GTEST_SKIP() << "needs etcd: there is no " << kEtcdBinary << " (bazelw installs it)";
    R2ccdTest::SetUp();
    etcd_ = std::make_unique<EtcdProcess>(folder_);
    for (int node = 0; node < kNodes; ++node) UseEtcd(node, etcd_->endpoint(), /*with_peers=*/true);
  }

  void UseEtcd(int node, const std::string& endpoint, bool with_peers) {
    std::istringstream lines(ReadFile(ConfigFile(node)));
    std::ofstream file(ConfigFile(node) + ".new");
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("store") && (with_peers || !line.starts_with("peers"))) file << line << "\n";
    file << "store { etcd_endpoints: \"" << endpoint << "\" }\n";
    file.close();
    std::filesystem::rename(ConfigFile(node) + ".new", ConfigFile(node));
  }
  bool AwaitStore(int node, const std::string& beginning) {
    return WaitUntil([&] { return Status(node).store().starts_with(beginning); });
  }

  std::unique_ptr<EtcdProcess> etcd_;
};

TEST_F(R2ccdEtcdTest, ItsEndChangesNothingForJobsAndItsReturnHealsItself) {
  StartAll();
  for (int node = 0; node < kNodes; ++node) ASSERT_TRUE(AwaitStore(node, "connected to etcd at " + etcd_->endpoint()));
  const auto job = Attach(0);
  ASSERT_NE(job->AwaitState("n2", "rail1", plan::NicState::kHealthy), 0);

  etcd_->Kill();
  for (int node = 0; node < kNodes; ++node) ASSERT_TRUE(AwaitStore(node, "lost: etcd at " + etcd_->endpoint())) << Status(node).store();
  EXPECT_EQ(job->Weight("n1", "rail0"), 1000) << "the last view stays";
  const Nanos before = Now();
  ASSERT_EQ(Act(1, "n1", "rail0", v1::FAIL), "");
  const Nanos told = job->AwaitState("n1", "rail0", plan::NicState::kFailed);
  ASSERT_NE(told, 0);
  EXPECT_LT(told - before, kVerdictMax) << "direct push goes on";

  etcd_->Start("data");
  for (int node = 0; node < kNodes; ++node) EXPECT_TRUE(AwaitStore(node, "connected to etcd at ")) << Status(node).store();
}

// One that knows no peers learns of all through etcd alone, and they of it.
TEST_F(R2ccdEtcdTest, ANodeWithoutPeersIsKnownThroughEtcd) {
  UseEtcd(2, etcd_->endpoint(), /*with_peers=*/false);
  for (int node = 0; node < kNodes; ++node) StartDaemon(node);
  const auto job = Attach(2);
  ASSERT_NE(job->AwaitState("n0", "rail0", plan::NicState::kHealthy), 0);
  ASSERT_EQ(Act(0, "n0", "rail0", v1::FAIL), "");
  EXPECT_NE(job->AwaitState("n0", "rail0", plan::NicState::kFailed), 0);
  const auto other = Attach(0);
  ASSERT_EQ(Act(2, "n2", "rail1", v1::FAIL), "");
  EXPECT_NE(other->AwaitState("n2", "rail1", plan::NicState::kFailed), 0);
}

TEST_F(R2ccdEtcdTest, OneThatRefusesIsOneClearLineAndDisturbsNobody) {
  const std::string nobody = "127.0.0.1:" + std::to_string(FreePort());
  for (int node = 0; node < kNodes; ++node) UseEtcd(node, nobody, /*with_peers=*/true);
  StartAll();
  ASSERT_TRUE(AwaitStore(0, "lost"));
  EXPECT_EQ(Status(0).store(), "lost: etcd at " + nobody + ": Connection refused");
  const auto job = Attach(0);
  EXPECT_NE(job->AwaitState("n1", "rail0", plan::NicState::kHealthy), 0);
  EXPECT_THAT(daemons_[0]->log(), HasSubstr("etcd is spoken to in the clear"));
  daemons_[0]->Signal(SIGTERM);
  EXPECT_EQ(daemons_[0]->Wait(), 0);
}

}  // namespace
}  // namespace r2cc::daemon
