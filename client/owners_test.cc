#include "client/owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace r2cc::client {
namespace {

using Answers = std::vector<std::pair<std::string, absl::StatusOr<v1::ForgetNodeReply>>>;

v1::ForgetNodeReply SilentFor(int64_t silent_ns, bool configured = false) {
  v1::ForgetNodeReply reply;
  reply.set_silent_ns(silent_ns);
  reply.set_configured(configured);
  return reply;
}

TEST(AtOnce, EachIndexOnce) {
  absl::Mutex mutex;
  std::multiset<size_t> seen;
  AtOnce(3 * kNodesAtOnce, [&](size_t index) {
    absl::MutexLock lock(&mutex);
    seen.insert(index);
  });
  ASSERT_EQ(seen.size(), 3 * kNodesAtOnce);
  for (size_t index = 0; index < seen.size(); ++index) EXPECT_EQ(seen.count(index), 1u);
  AtOnce(0, [](size_t) { FAIL() << "there is nothing to do"; });
}

TEST(JoinForgotten, CountsThoseThatForgotAndNamesThoseThatDidNot) {
  Answers answers = {{"n0", SilentFor(3)},
                     {"n1", absl::NotFoundError("there is no node 'n7'; the nodes are n0 n1")},
                     {"n2", SilentFor(9, true)},
                     {"n3", absl::UnavailableError("Connection refused")}};
  for (int i = 0; i < 20; ++i) answers.emplace_back("m" + std::to_string(i), absl::PermissionDeniedError("no role"));
  const auto all = JoinForgotten("n7", answers);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->silent_ns(), 9);
  EXPECT_TRUE(all->configured());
  EXPECT_EQ(all->others(), 1u) << "n2; n1 had nothing to forget";
  EXPECT_EQ(all->refused(), 21u);
  ASSERT_EQ(all->refusals_size(), 8);
  EXPECT_EQ(all->refusals(0).node() + ": " + all->refusals(0).why(), "n3: Connection refused");
}

TEST(JoinForgotten, NoDaemonThatForgotIsAnError) {
  const absl::Status unknown = absl::NotFoundError("there is no node 'n7'; the nodes are n0 n1");
  EXPECT_EQ(JoinForgotten("n7", {{"n0", unknown}, {"n1", unknown}}).status(), unknown);
  EXPECT_EQ(JoinForgotten(
                "n7", {{"n0", unknown}, {"n1", absl::UnavailableError("refused")}, {"n2", absl::FailedPreconditionError("it is alive")}})
                .status(),
            absl::FailedPreconditionError("on n2: it is alive"));
  EXPECT_EQ(JoinForgotten("n7", {{"n0", unknown}, {"n1", absl::PermissionDeniedError("no role")}}).status(),
            absl::PermissionDeniedError("on n1: no role"));
  EXPECT_EQ(JoinForgotten("n7", {}).status(), absl::NotFoundError("there is no node 'n7'"));
}

}  // namespace
}  // namespace r2cc::client
