#include "daemon/core/control_table.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fake_executor.h"

namespace r2cc::daemon {
namespace {

using Where = Access::Where;

class ControlTableTest : public testing::Test {
 protected:
  template <typename Request>
  absl::Status Ask(const Request& request) {
    std::optional<absl::Status> status;
    table_.Ask(request, Caller(), [&](absl::StatusOr<ReplyTo<Request>> reply) { status = reply.status(); });
    EXPECT_FALSE(status.has_value()) << "the core answers";
    core_.RunPosted();
    return status.value_or(absl::InternalError("no answer"));
  }

  FakeExecutor core_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::set<Role> roles_;
  std::vector<std::string> refused_;
  ControlTable table_{
      {.node = "n0",
       .core = &core_,
       .alive = alive_,
       .allow = [this](const Caller&,
                       Role role) { return roles_.contains(role) ? absl::OkStatus() : absl::PermissionDeniedError("lacks " + Name(role)); },
       .on_refused = [this](const Caller&, const std::string& what, const absl::Status&) { refused_.push_back(what); }}};
};

TEST_F(ControlTableTest, TheDoorJudgesWhatTheCoreDoesNot) {
  table_.Set<v1::ListJobsRequest>(Access{.what = "the jobs"}, [](const auto&) { return v1::ListJobsReply(); });
  EXPECT_EQ(table_.AccessTo(v1::ListJobsRequest()).judged, Where::kDoor);
  EXPECT_TRUE(Ask(v1::ListJobsRequest()).ok());
}

TEST_F(ControlTableTest, ARefusalOfTheCoreIsTheAnswerAndIsCounted) {
  bool answered = false;
  table_.Set<v1::ReportJobsRequest>(Access{.what = "to have jobs reported", .judged = Where::kHere},
                                    [&](const auto&, const Caller&, auto answer) {
                                      answered = true;
                                      answer(v1::ReportJobsReply());
                                    });
  EXPECT_EQ(Ask(v1::ReportJobsRequest()).message(), "lacks VIEW");
  EXPECT_FALSE(answered);
  EXPECT_EQ(refused_, std::vector<std::string>{"to have jobs reported"});
  roles_.insert(Role::kView);
  EXPECT_TRUE(Ask(v1::ReportJobsRequest()).ok());
  EXPECT_TRUE(answered);
}

TEST_F(ControlTableTest, ARowMayNoteWhatIsRefused) {
  std::string noted;
  table_.Set<v1::ReloadRequest>(Access{.what = "to reload", .role = Role::kOperate, .judged = Where::kHere},
                                [&](const auto&, const Caller&, const absl::Status& may, auto answer) {
                                  noted = std::string(may.message());
                                  answer(may);
                                });
  EXPECT_FALSE(Ask(v1::ReloadRequest()).ok());
  EXPECT_EQ(noted, "lacks OPERATE");
}

TEST_F(ControlTableTest, TheNodeThatTheRequestNamesJudges) {
  table_.Set<v1::ExplainNicRequest>(Access{.what = "to have a NIC explained", .judged = Where::kOwner},
                                    [](const auto&, const Caller&, auto answer) { answer(v1::ExplainNicReply()); });
  v1::ExplainNicRequest request;
  request.set_node("n1");
  EXPECT_TRUE(Ask(request).ok()) << "it is forwarded";
  request.set_node("n0");
  EXPECT_FALSE(Ask(request).ok());
}

TEST_F(ControlTableTest, AccessMayDependOnTheRequest) {
  table_.Set<v1::NicActionRequest>(
      std::function([](const v1::NicActionRequest& request) {
        Access access{.what = "to act", .role = Role::kDrill, .judged = Where::kHere, .more_closely = v1::NicAction_Name(request.action())};
        if (request.action() == v1::RESTORE) access.or_role = Role::kOperate;
        return access;
      }),
      [](const auto&) { return v1::NicActionReply(); });
  roles_.insert(Role::kOperate);
  v1::NicActionRequest request;
  request.set_action(v1::RESTORE);
  EXPECT_TRUE(Ask(request).ok());
  EXPECT_TRUE(refused_.empty()) << "one role is enough";
  request.set_action(v1::FAIL);
  EXPECT_FALSE(Ask(request).ok());
  EXPECT_EQ(refused_, std::vector<std::string>{"FAIL"});
}

TEST_F(ControlTableTest, ARequestWithoutRowOrDaemonIsUnavailable) {
  EXPECT_FALSE(table_.complete());
  EXPECT_TRUE(absl::IsUnavailable(Ask(v1::GetPlanRequest())));
  table_.Set<v1::GetPlanRequest>(Access(), [](const auto&) { return v1::Plan(); });
  EXPECT_TRUE(Ask(v1::GetPlanRequest()).ok());
  *alive_ = false;
  EXPECT_TRUE(absl::IsUnavailable(Ask(v1::GetPlanRequest())));
}

}  // namespace
}  // namespace r2cc::daemon
