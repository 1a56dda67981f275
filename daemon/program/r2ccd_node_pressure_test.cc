// The cost of one node's certificate to the others, at both ends of the streams between daemons. Each case ended r2ccd once, with the
// memory that its unit allows.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/core/convert.h"
#include "daemon/program/r2ccd_attacked.h"

namespace r2cc::daemon {
namespace {

// With the certificate of n3, where no daemon runs.
class NodePressureTest : public Attacked {
 protected:
  void SetUp() override {
    Attacked::SetUp();
    Start(/*tls=*/true);
  }
  // n2's daemon ends, and a program of n2 with n2's certificate has its place.
  std::unique_ptr<grpc::Server> InPlaceOfN2(grpc::Service* service) {
    daemons_[2]->Signal(SIGTERM);
    daemons_[2]->Wait();
    const CertificateAndKey n2 = *Issue(ca_, {Identity::Kind::kNode, "n2"}, ForDays(NowS(), 10));
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({n2.key, n2.certificate});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(ports_[2]), grpc::SslServerCredentials(options));
    builder.RegisterService(service);
    return builder.BuildAndStart();
  }
  // A refusal that a test does not count as its own: n2 left on purpose.
  void ExpectOthersUnharmed() {
    lost_ = Events(0, "peer-lost").size();
    ExpectUnharmed();
  }
  void ExpectFewEventsOf(const std::string& node) {
    EXPECT_LT(daemons_[0]->log().size(), 1u << 20);
    size_t of_node = 0;
    for (const v1::Event& event : Events(0, "nic-state")) of_node += event.node() == node;
    EXPECT_GT(of_node, 10u);
    EXPECT_LT(of_node, 300u);
  }

  const CertificateAndKey n3_ = *Issue(ca_, {Identity::Kind::kNode, "n3"}, ForDays(NowS(), 10));

  grpc::Status Put(const std::shared_ptr<grpc::Channel>& channel, const std::string& value) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::PutRequest request;
    request.set_key("/r2cc/nodes/n3");
    request.set_value(value);
    v1::PutReply reply;
    return v1::Store::NewStub(channel)->Put(&context, request, &reply);
  }
};

TEST_F(NodePressureTest, CertificatesWithJunkBehindThem) {
  for (int i = 0; i < 300; ++i) {
    v1::SignedValue value;
    value.set_value("x");
    value.set_certificate(n3_.certificate + std::to_string(i) + std::string(i % 2 == 0 ? 900'000 : 120'000, 'x'));
    value.set_signature("nonsense");
    (void)Put(Channel(0, &n3_), value.SerializeAsString());
  }
  for (int node = 0; node < nodes_; ++node) {
    ASSERT_TRUE(daemons_[node]->alive());
    EXPECT_LT(MemoryKb(daemons_[node]->pid(), "VmHWM"), kPeakKbMax) << "n" << node;
  }
  ExpectUnharmed();
}

TEST_F(NodePressureTest, WatchersThatDoNotRead) {
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::WatchReply>> reader;
  };
  const auto channel = Channel(0, &n3_);
  const auto stub = v1::Store::NewStub(channel);
  std::vector<std::unique_ptr<Watch>> watches;
  for (int i = 0; i < 40; ++i) {
    auto& watch = *watches.emplace_back(std::make_unique<Watch>());
    v1::WatchRequest request;
    request.set_prefix("/r2cc/");
    watch.reader = stub->Watch(&watch.context, request);
  }
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(Put(channel, std::to_string(i) + std::string(120'000, 'x')).ok());
  ExpectUnharmed();
  for (auto& watch : watches) {
    watch->context.TryCancel();
    (void)watch->reader->Finish();
  }
}

TEST_F(NodePressureTest, ViewsWithoutEnd) {
  const auto channel = Channel(0, &n3_);
  const auto stub = v1::Peer::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(8));
  const auto stream = stub->Exchange(&context);
  v1::PushRequest request;
  v1::NodeView& view = *request.mutable_view();
  view = Forged("n3");
  view.set_protocol(kPeerProtocol);
  view.clear_nics();
  for (int nic = 0; nic < 16; ++nic) {
    v1::NicView* const one = view.add_nics();
    one->set_name("rail" + std::to_string(nic));
    one->set_operator_weight_permille(1000);
  }
  uint64_t sent = 0;
  for (;; ++sent) {
    view.mutable_epoch()->set_counter(sent + 1);
    for (v1::NicView& nic : *view.mutable_nics()) nic.set_state(sent % 2 == 0 ? v1::FAILED : v1::HEALTHY);
    if (!stream->Write(request)) break;
  }
  (void)stream->Finish();
  std::printf("%llu views were sent\n", static_cast<unsigned long long>(sent));
  ExpectUnharmed();
  ExpectFewEventsOf("n3");
}

// Many streams, each with a view that is small on the wire and large in memory.
TEST_F(NodePressureTest, ViewsOnManyStreamsAtOnce) {
  v1::PushRequest request;
  v1::NodeView& view = *request.mutable_view();
  view = Forged("n3");
  view.set_protocol(kPeerProtocol);
  view.clear_nics();
  while (view.nics_size() < 120'000) view.add_nics();
  std::vector<std::thread> conversations;
  std::atomic<int> written = 0;
  for (int i = 0; i < 16; ++i)
    conversations.emplace_back([&] {
      struct Exchange {
        grpc::ClientContext context;
        std::unique_ptr<grpc::ClientReaderWriter<v1::PushRequest, v1::PushReply>> stream;
      };
      const auto stub = v1::Peer::NewStub(Channel(0, &n3_));
      std::vector<std::unique_ptr<Exchange>> exchanges;
      for (int j = 0; j < 64; ++j) {
        auto& exchange = *exchanges.emplace_back(std::make_unique<Exchange>());
        exchange.context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
        exchange.stream = stub->Exchange(&exchange.context);
        written += exchange.stream->Write(request);
      }
      for (auto& exchange : exchanges) exchange->stream->Write(request);
      for (auto& exchange : exchanges) (void)exchange->stream->Finish();
    });
  for (std::thread& conversation : conversations) conversation.join();
  std::printf("%d views were sent\n", written.load());
  ExpectUnharmed();
}

// The server's end of a stream between daemons, by a node that sends anything at any rate.
class HostilePeer final : public v1::Peer::Service {
 public:
  explicit HostilePeer(std::vector<v1::PushReply> replies) : replies_(std::move(replies)) {}
  grpc::Status Exchange(grpc::ServerContext* context, grpc::ServerReaderWriter<v1::PushReply, v1::PushRequest>* stream) override {
    v1::PushRequest request;
    (void)stream->Read(&request);
    for (uint64_t i = 0; !context->IsCancelled(); ++i) {
      v1::PushReply& reply = replies_[i % replies_.size()];
      {
        const std::lock_guard lock(mutex_);
        reply.mutable_view()->mutable_epoch()->set_counter(++counter_);
      }
      if (!stream->Write(reply)) break;
      ++sent_;
    }
    return grpc::Status::OK;
  }
  uint64_t sent() const { return sent_; }

 private:
  std::vector<v1::PushReply> replies_;
  std::mutex mutex_;
  uint64_t counter_ = 0;
  std::atomic<uint64_t> sent_ = 0;
};

TEST_F(NodePressureTest, AServerWhoseViewsHaveNoEnd) {
  std::vector<v1::PushReply> replies(2);
  for (int i = 0; i < 2; ++i) {
    v1::NodeView& view = *replies[i].mutable_view();
    view = Forged("n2");
    view.set_protocol(kPeerProtocol);
    view.clear_nics();
    for (int nic = 0; nic < 16; ++nic) {
      v1::NicView* const one = view.add_nics();
      one->set_name("rail" + std::to_string(nic));
      one->set_operator_weight_permille(1000);
      one->set_state(i == 0 ? v1::FAILED : v1::HEALTHY);
    }
  }
  HostilePeer n2(replies);
  const auto server = InPlaceOfN2(&n2);
  ASSERT_NE(server, nullptr);
  const Nanos begin = Now();
  EXPECT_TRUE(WaitUntil([&] { return Now() - begin > 8 * kNanosPerSecond; }, 10 * kNanosPerSecond));
  std::printf("%llu views were sent\n", static_cast<unsigned long long>(n2.sent()));
  EXPECT_GT(n2.sent(), 20u);
  ExpectOthersUnharmed();
  ExpectFewEventsOf("n2");
  server->Shutdown(std::chrono::system_clock::now());
}

TEST_F(NodePressureTest, AServerWhoseViewsAreLargeInMemory) {
  std::vector<v1::PushReply> replies(1);
  *replies[0].mutable_view() = Forged("n2");
  while (replies[0].view().nics_size() < 120'000) replies[0].mutable_view()->add_nics();
  HostilePeer n2(replies);
  const auto server = InPlaceOfN2(&n2);
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(WaitUntil([&] { return n2.sent() > 4; }));
  ExpectOthersUnharmed();
  const v1::StatusReply status = Status(0);
  EXPECT_THAT(status.DebugString(), testing::HasSubstr("a view of more than 2048 NICs"));
  server->Shutdown(std::chrono::system_clock::now());
}

}  // namespace
}  // namespace r2cc::daemon
