// Takes health events as NVSentinel's platform connector does, at the Unix socket of its argument, and prints a line for each.
#include <grpcpp/grpcpp.h>

#include <iostream>
#include <string>

#include "proto/nvsentinel.grpc.pb.h"

namespace {

class Connector final : public datamodels::PlatformConnector::Service {
 public:
  grpc::Status HealthEventOccurredV1(grpc::ServerContext*, const datamodels::HealthEvents* events, google::protobuf::Empty*) override {
    for (const datamodels::HealthEvent& event : events->events())
      std::cout << event.nodename() << " " << event.checkname() << " " << event.entitiesimpacted(0).entityvalue() << " "
                << (event.ishealthy() ? "healthy" : "ill") << " " << (event.isfatal() ? "fatal" : "not-fatal") << " "
                << datamodels::ProcessingStrategy_Name(event.processingstrategy()) << " " << event.message() << std::endl;
    return grpc::Status::OK;
  }
};

}  // namespace

int main(int, char** argv) {
  Connector connector;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + std::string(argv[1]), grpc::InsecureServerCredentials());
  builder.RegisterService(&connector);
  builder.BuildAndStart()->Wait();
}
