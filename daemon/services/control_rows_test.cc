#include "daemon/services/control_rows.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/fake_executor.h"

namespace r2cc::daemon {
namespace {

class ControlRowsTest : public testing::Test {
 protected:
  ControlRowsTest() { SetControlRows({}, &table_); }

  // The role of a caller, and where that is judged: "OPERATE here".
  template <typename Request>
  std::string AccessTo(const Request& request = Request()) const {
    const Access access = table_.AccessTo(request);
    const char* const where[] = {"door", "here", "owner", "known"};
    return absl::StrCat(Name(access.role), access.or_role.has_value() ? absl::StrCat(" or ", Name(*access.or_role)) : "", " ",
                        where[static_cast<int>(access.judged)]);
  }
  std::string AccessTo(v1::NicAction action) const {
    v1::NicActionRequest request;
    request.set_action(action);
    return AccessTo(request);
  }

  FakeExecutor core_;
  ControlTable table_{{.node = "n0",
                       .core = &core_,
                       .alive = std::make_shared<bool>(true),
                       .allow = [](const Caller&, Role) { return absl::OkStatus(); },
                       .on_refused = [](const Caller&, const std::string&, const absl::Status&) {}}};
};

TEST_F(ControlRowsTest, EachRequestNeedsItsRole) {
  EXPECT_EQ(AccessTo<v1::StatusRequest>(), "VIEW door");
  EXPECT_EQ(AccessTo<v1::ListNicsRequest>(), "VIEW door");
  EXPECT_EQ(AccessTo<v1::ListJobsRequest>(), "VIEW door");
  EXPECT_EQ(AccessTo<v1::GetPlanRequest>(), "VIEW door");
  EXPECT_EQ(AccessTo<v1::ExplainPlanRequest>(), "VIEW door");
  EXPECT_EQ(AccessTo<v1::ConfigRequest>(), "VIEW door");
  EXPECT_EQ(AccessTo<MetricsRequest>(), "VIEW door");
  EXPECT_EQ(AccessTo<v1::ReloadRequest>(), "OPERATE here");
  EXPECT_EQ(AccessTo<v1::DisagreementRequest>(), "OPERATE here");
}

// Daemons forward these, so that none may be judged at the door alone: the service Peer has no door.
TEST_F(ControlRowsTest, RequestsOfPeersAreJudgedOnTheCore) {
  EXPECT_EQ(AccessTo<v1::ReportJobsRequest>(), "VIEW here");
  EXPECT_EQ(AccessTo<v1::ForgetNodeRequest>(), "OPERATE here");
  EXPECT_EQ(AccessTo<v1::ExplainNicRequest>(), "VIEW owner");
  EXPECT_EQ(AccessTo<v1::ProbePathsRequest>(), "VIEW owner");
}

TEST_F(ControlRowsTest, ADrillNeedsItsRoleAndIsEndedByOperatorsToo) {
  for (int action = v1::NicAction_MIN; action <= v1::NicAction_MAX; ++action) {
    if (!v1::NicAction_IsValid(action)) continue;
    const auto one = static_cast<v1::NicAction>(action);
    EXPECT_EQ(AccessTo(one), one == v1::FAIL      ? "DRILL owner"
                             : one == v1::RESTORE ? "DRILL or OPERATE owner"
                                                  : "OPERATE owner")
        << v1::NicAction_Name(one);
  }
}

TEST_F(ControlRowsTest, WhetherTheDaemonServesNeedsNoRole) {
  v1::StatusRequest request;
  request.set_health(true);
  EXPECT_EQ(AccessTo(request), "VIEW known");
}

}  // namespace
}  // namespace r2cc::daemon
