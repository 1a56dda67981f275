#include "client/health/health_events.h"

#include <chrono>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/transport_reason.h"
#include "client/core/client.h"
#include "client/core/table.h"
#include "client/health/health_reporter.h"
#include "grpcpp/grpcpp.h"
#include "proto/nvsentinel.grpc.pb.h"

namespace r2cc::client {
namespace {

constexpr int kLookEveryMs = 1000;
// After a failure, so that a connector that restarts is not flooded by a whole fleet.
constexpr int kLooksBetweenTries = 5;
constexpr std::chrono::seconds kAnswerWithin{3};

class GrpcHealthSink final : public HealthSink {
 public:
  explicit GrpcHealthSink(const std::string& path)
      : stub_(datamodels::PlatformConnector::NewStub(grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials()))) {}

  absl::Status Publish(const datamodels::HealthEvents& events) override {
    grpc::ClientContext context;
    // One that has just come is found at once.
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + kAnswerWithin);
    google::protobuf::Empty taken;
    const grpc::Status status = stub_->HealthEventOccurredV1(&context, events, &taken);
    return status.ok() ? absl::OkStatus() : absl::UnavailableError(TransportReason(status.error_message()));
  }

 private:
  const std::unique_ptr<datamodels::PlatformConnector::Stub> stub_;
};

}  // namespace

std::unique_ptr<HealthSink> ConnectHealthSink(const std::string& path) { return std::make_unique<GrpcHealthSink>(path); }

void FollowHealth(const std::string& node, const std::function<absl::StatusOr<v1::NodeView>()>& own, HealthSink* sink,
                  const std::function<int64_t()>& now_realtime_ns, const std::function<void(const std::string&)>& log,
                  const std::function<bool(int milliseconds)>& wait) {
  HealthReporter reporter(node);
  std::string trouble;
  const auto note = [&](const std::string& now) {
    if (std::exchange(trouble, now) != now) log(now.empty() ? "health events are delivered" : now);
  };
  int pause = 0;
  do {
    if (pause > 0) {
      --pause;
      continue;
    }
    const absl::StatusOr<v1::NodeView> view = own();
    // NVSentinel keeps the last state while r2ccd cannot be asked.
    if (!view.ok()) {
      note(absl::StrCat("r2ccd does not answer: ", view.status().message()));
      continue;
    }
    const datamodels::HealthEvents events = reporter.Look(*view, now_realtime_ns());
    if (events.events().empty()) {
      note("");
      continue;
    }
    if (const absl::Status status = sink->Publish(events); status.ok()) {
      reporter.Delivered();
      note("");
    } else {
      note(absl::StrCat("NVSentinel did not accept health events: ", status.message(), "; retrying"));
      pause = kLooksBetweenTries;
    }
  } while (wait(kLookEveryMs));
}

int Run(const HealthEventsCommand& command, const std::function<int64_t()>& now_realtime_ns,
        const std::function<bool(int milliseconds)>& wait) {
  const auto own = [&]() -> absl::StatusOr<v1::NodeView> {
    const auto client = Client::Connect(command.socket_path);
    if (!client.ok()) return client.status();
    return (*client)->OwnNodeSoon();
  };
  const std::unique_ptr<HealthSink> sink = ConnectHealthSink(command.connector);
  FollowHealth(
      command.node, own, sink.get(), now_realtime_ns, [](const std::string& line) { std::cerr << Printable(line) << std::endl; }, wait);
  return 0;
}

}  // namespace r2cc::client
