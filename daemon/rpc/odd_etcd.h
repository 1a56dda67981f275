// An etcd of our own making, for what a real one does too seldom.
#ifndef R2CC_DAEMON_RPC_ODD_ETCD_H_
#define R2CC_DAEMON_RPC_ODD_ETCD_H_

#include <atomic>
#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "proto/etcd.grpc.pb.h"

namespace r2cc::daemon {

class OddEtcd final : public etcdserverpb::KV::Service, public etcdserverpb::Watch::Service, public etcdserverpb::Lease::Service {
 public:
  OddEtcd() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(static_cast<etcdserverpb::KV::Service*>(this));
    builder.RegisterService(static_cast<etcdserverpb::Watch::Service*>(this));
    builder.RegisterService(static_cast<etcdserverpb::Lease::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  ~OddEtcd() override { server_->Shutdown(gpr_time_0(GPR_CLOCK_REALTIME)); }
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Range(grpc::ServerContext*, const etcdserverpb::RangeRequest*, etcdserverpb::RangeResponse* reply) override {
    reply->mutable_header()->set_revision(7);
    if (range_has_more_) reply->set_more(true);
    return range_status_;
  }
  grpc::Status Put(grpc::ServerContext*, const etcdserverpb::PutRequest*, etcdserverpb::PutResponse*) override { return put_status_; }
  grpc::Status LeaseGrant(grpc::ServerContext*, const etcdserverpb::LeaseGrantRequest* request,
                          etcdserverpb::LeaseGrantResponse* reply) override {
    reply->set_id(grants_ ? 5 : 0);
    reply->set_ttl(request->ttl());
    if (!grants_) reply->set_error("no more leases");
    return grpc::Status::OK;
  }
  grpc::Status Watch(grpc::ServerContext* context,
                     grpc::ServerReaderWriter<etcdserverpb::WatchResponse, etcdserverpb::WatchRequest>* stream) override {
    etcdserverpb::WatchRequest request;
    stream->Read(&request);
    etcdserverpb::WatchResponse reply;
    reply.set_created(true);
    if (compactions_ > 0) {
      --compactions_;
      reply.set_canceled(true);
      reply.set_compact_revision(9);
    }
    leader_asked_for_ = context->client_metadata().contains("hasleader");
    start_revision_ = request.create_request().start_revision();
    stream->Write(reply);
    stream->Read(&request);  // until the client goes
    return grpc::Status::OK;
  }
  grpc::Status LeaseKeepAlive(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<etcdserverpb::LeaseKeepAliveResponse, etcdserverpb::LeaseKeepAliveRequest>* stream) override {
    for (etcdserverpb::LeaseKeepAliveRequest request; stream->Read(&request);) {
      etcdserverpb::LeaseKeepAliveResponse reply;
      reply.set_id(request.id());
      reply.set_ttl(5);
      if (keeps_alive_) stream->Write(reply);
    }
    return grpc::Status::OK;
  }

  // Set before anybody connects.
  grpc::Status range_status_;
  grpc::Status put_status_;
  bool grants_ = true;
  bool keeps_alive_ = true;
  bool range_has_more_ = false;
  std::atomic<int> compactions_{0};
  std::atomic<bool> leader_asked_for_{false};
  std::atomic<int64_t> start_revision_{0};

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_ODD_ETCD_H_
