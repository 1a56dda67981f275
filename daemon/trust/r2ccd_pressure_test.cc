// Conversations that cost a daemon more than it has, from those who have proved nothing and from ordinary users. Each ended r2ccd once,
// with the memory that its unit allows. During each n1 stays connected, and root's drain is done within a second.
#include <gmock/gmock.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "daemon/convert.h"
#include "daemon/trust/http2_attacker.h"
#include "daemon/trust/r2ccd_attacked.h"
#include "plan/page/ring_layout.h"

namespace r2cc::daemon {
namespace {

constexpr uid_t kNobody = 65534;

enum class Door { kTls, kClear, kControl };

class PressureTest : public Attacked, public testing::WithParamInterface<Door> {
 protected:
  void SetUp() override {
    Attacked::SetUp();
    Start(GetParam() == Door::kTls);
  }
  // Null: the door is closed to it.
  std::unique_ptr<Http2Attacker> Enter() {
    if (GetParam() == Door::kControl) return Http2Attacker::Local(RunDir(0) + "/r2ccd.sock", kNobody);
    return Http2Attacker::Tcp(ports_[0], GetParam() == Door::kTls);
  }
};

INSTANTIATE_TEST_SUITE_P(Doors, PressureTest, testing::Values(Door::kTls, Door::kClear, Door::kControl), [](const auto& info) {
  return info.param == Door::kTls ? "TlsWithoutCertificate" : info.param == Door::kClear ? "Clear" : "ControlSocket";
});

TEST_P(PressureTest, StreamsThatAreResetAtOnce) {
  int sent = 0;
  for (int connection = 0; connection < 20; ++connection) {
    const auto attacker = Enter();
    if (attacker == nullptr || !attacker->Send(Http2Attacker::Preface())) continue;
    bool open = true;
    for (uint32_t i = 0; open && i < 40'000; i += 100) {
      std::string frames;
      for (uint32_t j = i; j < i + 100; ++j)
        frames += Http2Attacker::Frame(Http2Attacker::kHeaders, 5, 2 * j + 1, Http2Attacker::Request("/no.such/Method")) +
                  Http2Attacker::Frame(Http2Attacker::kRst, 0, 2 * j + 1, std::string(4, '\0'));
      open = attacker->Send(frames);
      sent += 100;
    }
  }
  EXPECT_GT(sent, 0);
  ExpectUnharmed();
  EXPECT_GT(RefusedInAll(), 0u);
}

TEST_P(PressureTest, RequestsWithoutAnEnd) {
  std::vector<std::unique_ptr<Http2Attacker>> attackers;
  const std::string part(16'000, 'x');
  for (int connection = 0; connection < 6; ++connection) {
    auto attacker = Enter();
    if (attacker == nullptr || !attacker->Send(Http2Attacker::Preface())) continue;
    bool open = true;
    for (uint32_t i = 0; open && i < 64; ++i) {
      const uint32_t stream = 2 * i + 1;
      open = attacker->Send(Http2Attacker::Frame(Http2Attacker::kHeaders, 4, stream, Http2Attacker::Request("/r2cc.v1.Control/ActOnNic")) +
                            Http2Attacker::Frame(Http2Attacker::kData, 0, stream, std::string("\0\0\x3f\0\0", 5)));
    }
    // As much as the windows let in.
    for (int round = 0; open && round < 260; ++round)
      for (uint32_t i = 0; open && i < 64; ++i) open = attacker->Send(Http2Attacker::Frame(Http2Attacker::kData, 0, 2 * i + 1, part));
    attackers.push_back(std::move(attacker));
  }
  ExpectUnharmed();
  EXPECT_GT(RefusedInAll(), 0u);
}

TEST_P(PressureTest, SmallOnTheWireAndLargeInMemory) {
  std::vector<std::unique_ptr<Http2Attacker>> attackers;
  std::string fields;
  while (fields.size() < (4 << 20) - 10) fields += std::string("\xfa\x3f\0", 3);  // field 1023, of length 0
  for (int connection = 0; connection < 8; ++connection) {
    auto attacker = Enter();
    if (attacker == nullptr || !attacker->Send(Http2Attacker::Preface())) continue;
    bool open = true;
    for (uint32_t stream = 1; open && stream < 8; stream += 2) {
      const size_t n = fields.size();
      open = attacker->Send(
          Http2Attacker::Frame(Http2Attacker::kHeaders, 4, stream, Http2Attacker::Request("/r2cc.v1.Control/ActOnNic")) +
          Http2Attacker::Frame(Http2Attacker::kData, 0, stream, std::string({0, char(n >> 24), char(n >> 16), char(n >> 8), char(n)})));
      for (size_t at = 0; open && at < n; at += 16'000)
        open = attacker->Send(Http2Attacker::Frame(Http2Attacker::kData, at + 16'000 >= n ? 1 : 0, stream, fields.substr(at, 16'000)));
    }
    attackers.push_back(std::move(attacker));
  }
  ExpectUnharmed();
  EXPECT_GT(RefusedInAll(), 0u);
}

// All rules are kept, and nothing is ever asked. As many as the test may have descriptors for, and at most ten thousand.
TEST_P(PressureTest, ManyConversationsThatBehaveAndSayNothing) {
  const int wanted = GetParam() == Door::kTls ? 2000 : 4000;
  std::vector<std::unique_ptr<Http2Attacker>> attackers;
  for (int i = 0; i < wanted; ++i) {
    auto attacker = Enter();
    if (attacker == nullptr) break;
    if (!attacker->Send(Http2Attacker::Preface())) continue;
    attackers.push_back(std::move(attacker));
  }
  size_t held = 0;
  ASSERT_TRUE(WaitUntil(
      [&] {
        held = 0;
        for (const auto& attacker : attackers) held += !attacker->over();
        return held <= 128;
      },
      10 * kNanosPerSecond))
      << held << " conversations are held";
  ExpectUnharmed();
  EXPECT_GT(RefusedInAll(), 1000u);
  attackers.clear();
  EXPECT_TRUE(WaitUntil([&] { return 10 * MemoryKb(daemons_[0]->pid(), "VmRSS") < 12 * before_kb_; }, 60 * kNanosPerSecond))
      << MemoryKb(daemons_[0]->pid(), "VmRSS") << " KiB, and " << before_kb_ << " before";
}

// With the certificate of n3, where no daemon runs.
class NodePressureTest : public Attacked {
 protected:
  void SetUp() override {
    Attacked::SetUp();
    Start(/*tls=*/true);
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
  EXPECT_LT(daemons_[0]->log().size(), 1u << 20);
  size_t of_n3 = 0;
  for (const v1::Event& event : Events(0, "nic-state")) of_n3 += event.node() == "n3";
  EXPECT_GT(of_n3, 10u);
  EXPECT_LT(of_n3, 300u);
}

// By an ordinary user.
class UserPressureTest : public Attacked {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: acts as another user";
    Attacked::SetUp();
    Start(/*tls=*/false);
  }
  // A process of his as the attach socket knows it; its ring.
  struct Attached {
    int fd = -1;
    plan::RingLayout* ring = nullptr;
  };
  Attached AttachAs(uid_t uid) {
    Attached attached{socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (RunDir(0) + "/attach.sock").c_str());
    EXPECT_EQ(seteuid(uid), 0);
    const int connected = connect(attached.fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    EXPECT_EQ(seteuid(0), 0);
    EXPECT_EQ(connected, 0);
    plan::AttachRequest request{};
    request.magic = plan::kAttachMagic;
    request.version = plan::kAttachVersion;
    request.pid = getpid();
    request.rail_count = 1;
    plan::SetText("test", request.job);
    plan::SetText(Address(0, 0), request.rails[0].name);
    (void)!send(attached.fd, &request, sizeof(request), MSG_NOSIGNAL);
    plan::AttachReply reply{};
    iovec part{&reply, sizeof(reply)};
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr message{.msg_name = nullptr,
                   .msg_namelen = 0,
                   .msg_iov = &part,
                   .msg_iovlen = 1,
                   .msg_control = control,
                   .msg_controllen = sizeof(control),
                   .msg_flags = 0};
    if (recvmsg(attached.fd, &message, MSG_CMSG_CLOEXEC) <= 0) return attached;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_len != CMSG_LEN(2 * sizeof(int))) return attached;
    int descriptors[2];
    std::memcpy(descriptors, CMSG_DATA(header), sizeof(descriptors));
    void* const memory = mmap(nullptr, sizeof(plan::RingLayout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[1], 0);
    if (memory != MAP_FAILED) attached.ring = static_cast<plan::RingLayout*>(memory);
    for (const int fd : descriptors) close(fd);
    return attached;
  }
};

TEST_F(UserPressureTest, RingsThatClaimWhatTheyHaveNotWritten) {
  std::vector<Attached> all;
  int in = 0;
  for (int i = 0; i < 1024; ++i) {
    all.push_back(AttachAs(kNobody));
    if (all.back().ring == nullptr) continue;
    ++in;
    all.back().ring->put = plan::kRingRecords;
    (void)!send(all.back().fd, &plan::kDoorbellEvidence, 1, MSG_NOSIGNAL);
  }
  EXPECT_GT(in, 0);
  AwaitAnswers(5);
  ExpectUnharmed();
  for (const Attached& one : all) {
    if (one.ring != nullptr) munmap(one.ring, sizeof(plan::RingLayout));
    close(one.fd);
  }
}

TEST_F(UserPressureTest, FollowersWhoWaitForWhatNeverComes) {
  struct Follower {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::Event>> reader;
  };
  const Attached job = AttachAs(kNobody);
  ASSERT_NE(job.ring, nullptr);
  std::vector<std::unique_ptr<Follower>> followers;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  ASSERT_EQ(seteuid(kNobody), 0);
  // 16 are what one conversation may have open: a 17th waits for its end.
  for (int connection = 0; connection < 94; ++connection) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels.push_back(grpc::CreateCustomChannel("unix:" + RunDir(0) + "/r2ccd.sock", grpc::InsecureChannelCredentials(), own));
    (void)channels.back()->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(1));
    const auto stub = v1::Control::NewStub(channels.back());
    for (int i = 0; i < 16; ++i) {
      auto& follower = *followers.emplace_back(std::make_unique<Follower>());
      follower.context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
      v1::EventsRequest request;
      request.set_follow(true);
      request.add_kinds("no-such");
      follower.reader = stub->Events(&follower.context, request);
    }
  }
  ASSERT_EQ(seteuid(0), 0);
  plan::EvidenceRecord up{};
  up.kind = static_cast<uint32_t>(plan::EvidenceKind::kLinkUp);
  plan::SetText("n1", up.peer_node);
  plan::SetText("rail0", up.peer_nic);
  for (uint64_t i = 0; i < 1000; ++i) {
    up.time_ns = Now();
    std::memcpy(job.ring->records[i], &up, sizeof(up));
  }
  job.ring->put = 1000;
  (void)!send(job.fd, &plan::kDoorbellEvidence, 1, MSG_NOSIGNAL);
  // It has looked at them all.
  EXPECT_TRUE(WaitUntil([&] { return __atomic_load_n(&job.ring->taken, __ATOMIC_ACQUIRE) == 1000; }));
  ExpectUnharmed();
  EXPECT_EQ(daemons_[0]->log().find("loop does not turn"), std::string::npos);
  for (auto& follower : followers) follower->context.TryCancel();
  for (auto& follower : followers) (void)follower->reader->Finish();
  munmap(job.ring, sizeof(plan::RingLayout));
  close(job.fd);
}

}  // namespace
}  // namespace r2cc::daemon
