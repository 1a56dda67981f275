// The events that arrive at a server with NVSentinel's messages.
#include "client/health/health_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "client/health/health_reporter.h"
#include "grpcpp/grpcpp.h"
#include "proto/nvsentinel.grpc.pb.h"

namespace r2cc::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Connector final : public datamodels::PlatformConnector::Service {
 public:
  grpc::Status HealthEventOccurredV1(grpc::ServerContext*, const datamodels::HealthEvents* events, google::protobuf::Empty*) override {
    for (const datamodels::HealthEvent& event : events->events()) received.push_back(event);
    return grpc::Status::OK;
  }
  std::vector<datamodels::HealthEvent> received;
};

class HealthEventsTest : public testing::Test {
 protected:
  HealthEventsTest() {
    // The path of a Unix socket has room for 107 bytes.
    char folder[] = "/tmp/r2cc-health-XXXXXX";
    folder_ = mkdtemp(folder);
    path_ = folder_ + "/nvsentinel.sock";
    own_.set_node("n0");
    v1::NicView& nic = *own_.add_nics();
    nic.set_name("rail0");
    nic.set_pci("0000:10:00.0");
    nic.set_operator_weight_permille(1000);
    nic.set_state(v1::HEALTHY);
  }
  ~HealthEventsTest() override { std::filesystem::remove_all(folder_); }
  void StartServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path_, grpc::InsecureServerCredentials());
    builder.RegisterService(&connector_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  // `at` is called before each look after the first.
  void Follow(int looks, const std::function<void(int look)>& at) {
    int look = 0;
    const auto sink = ConnectHealthSink(path_);
    FollowHealth(
        "node-7", [this] { return view_ok_ ? absl::StatusOr<v1::NodeView>(own_) : absl::UnavailableError("it is down"); }, sink.get(),
        [] { return int64_t{1}; }, [this](const std::string& line) { lines_.push_back(line); },
        [&](int) {
          if (++look >= looks) return false;
          at(look);
          return true;
        });
  }

  std::string folder_, path_;
  v1::NodeView own_;
  bool view_ok_ = true;
  Connector connector_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> lines_;
};

TEST_F(HealthEventsTest, TheServerReceivesAFaultAndItsEnd) {
  StartServer();
  Follow(6, [&](int look) {
    if (look == 2) own_.mutable_nics(0)->set_state(v1::FAILED);
    if (look == 4) own_.mutable_nics(0)->set_state(v1::HEALTHY);
  });
  std::vector<std::string> received;
  for (const datamodels::HealthEvent& event : connector_.received) {
    EXPECT_EQ(event.nodename(), "node-7");
    received.push_back(event.checkname() + (event.ishealthy() ? " healthy" : event.isfatal() ? " fatal" : " stored"));
  }
  EXPECT_THAT(received, ElementsAre("R2CCNic healthy", "R2CCNoRail healthy", "R2CCNic stored", "R2CCNoRail fatal", "R2CCNic healthy",
                                    "R2CCNoRail healthy"));
  EXPECT_TRUE(lines_.empty());
}

TEST_F(HealthEventsTest, ALateConnectorReceivesAllEvents) {
  Follow(30, [&](int look) {
    if (look == 3) StartServer();
  });
  EXPECT_EQ(connector_.received.size(), 2u);
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_EQ(lines_[0], "NVSentinel did not accept health events: it did not answer in time; retrying");
  EXPECT_EQ(lines_[1], "health events are delivered");
}

TEST_F(HealthEventsTest, ADaemonThatDoesNotAnswerChangesNothing) {
  StartServer();
  Follow(20, [&](int look) { view_ok_ = look < 3 || look > 12; });
  EXPECT_EQ(connector_.received.size(), 2u);
  EXPECT_THAT(lines_, ElementsAre("r2ccd does not answer: it is down", "health events are delivered"));
}

}  // namespace
}  // namespace r2cc::client
