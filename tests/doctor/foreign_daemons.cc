// Daemons that answer as no daemon of this tree does, for tests of `r2ccctl doctor`. They speak in the clear.
//
//   foreign_daemons serve HOST:PORT NODE PROTOCOL  # a daemon of NODE that speaks this protocol of daemons alone; until it is killed
//   foreign_daemons fill HOST:PORT NODES NICS      # puts views of NODES sound nodes into the store that r2ccd serves there
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "daemon/core/convert.h"
#include "proto/r2cc.grpc.pb.h"
#include "proto/store.grpc.pb.h"

namespace r2cc {
namespace {

v1::NodeView View(const std::string& node) {
  v1::NodeView view;
  view.set_node(node);
  view.mutable_epoch()->set_incarnation(1);
  view.mutable_epoch()->set_counter(1);
  view.set_protocol(daemon::kPeerProtocol);
  view.set_word(v1::NODE_HEALTHY);
  return view;
}

class StrangePeer final : public v1::Peer::Service {
 public:
  StrangePeer(const std::string& node, uint32_t protocol) : view_(View(node)) {
    view_.set_protocol(protocol);
    view_.set_release("9.9.9");
  }

  grpc::Status Exchange(grpc::ServerContext* /*context*/, grpc::ServerReaderWriter<v1::PushReply, v1::PushRequest>* stream) override {
    v1::PushRequest request;
    v1::PushReply reply;
    *reply.mutable_view() = view_;
    while (stream->Read(&request)) stream->Write(reply);
    return grpc::Status::OK;
  }

 private:
  v1::NodeView view_;
};

int Serve(const std::string& address, const std::string& node, const std::string& protocol) {
  StrangePeer service(node, static_cast<uint32_t>(std::atoi(protocol.c_str())));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  server->Wait();
  return 0;
}

int Fill(const std::string& address, int nodes, int nics) {
  const auto store = v1::Store::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  for (int node = 0; node < nodes; ++node) {
    const std::string name = "far" + std::to_string(node);
    v1::NodeView view = View(name);
    for (int i = 0; i < nics; ++i) {
      v1::NicView* nic = view.add_nics();
      nic->set_name("far" + std::to_string(i));
      nic->set_operator_weight_permille(1000);
      nic->set_link_up(true);
      nic->set_state(v1::HEALTHY);
    }
    v1::SignedValue value;
    value.set_value(view.SerializeAsString());
    v1::PutRequest put;
    put.set_key("/r2cc/nodes/" + name);
    put.set_value(value.SerializeAsString());
    grpc::ClientContext context;
    v1::PutReply reply;
    if (const grpc::Status status = store->Put(&context, put, &reply); !status.ok()) {
      std::fprintf(stderr, "the store took %d nodes: %s\n", node, status.error_message().c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace r2cc

int main(int argc, char** argv) {
  const std::string what = argc == 5 ? argv[1] : "";
  if (what == "serve") return r2cc::Serve(argv[2], argv[3], argv[4]);
  if (what == "fill") return r2cc::Fill(argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  std::fprintf(stderr, "foreign_daemons serve HOST:PORT NODE PROTOCOL, or foreign_daemons fill HOST:PORT NODES NICS\n");
  return 2;
}
