// Conversations that cost a daemon more than it has, from those who have proved nothing and from ordinary users. Each ended r2ccd once,
// with the memory that its unit allows. During each n1 stays connected, and root's drain is done within a second.
#include <gmock/gmock.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "daemon/program/http2_attacker.h"
#include "daemon/program/r2ccd_attacked.h"
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
TEST_P(PressureTest, ManyIdleConversationsThatBehave) {
  const int wanted = GetParam() == Door::kTls ? 2000 : 4000;
  std::vector<std::unique_ptr<Http2Attacker>> attackers;
  for (int i = 0; i < wanted; ++i) {
    auto attacker = Enter();
    if (attacker == nullptr) break;
    if (!attacker->Send(Http2Attacker::Preface())) continue;
    attackers.push_back(std::move(attacker));
  }
  size_t open = 0;
  ASSERT_TRUE(WaitUntil(
      [&] {
        open = 0;
        for (const auto& attacker : attackers) open += !attacker->over();
        return open <= 128;
      },
      10 * kNanosPerSecond))
      << open << " conversations are held";
  ExpectUnharmed();
  EXPECT_GT(RefusedInAll(), 1000u);
  attackers.clear();
  EXPECT_TRUE(WaitUntil([&] { return 10 * MemoryKb(daemons_[0]->pid(), "VmRSS") < 12 * before_kb_; }, 60 * kNanosPerSecond))
      << MemoryKb(daemons_[0]->pid(), "VmRSS") << " KiB, and " << before_kb_ << " before";
}

// By an ordinary user.
class UserPressureTest : public Attacked {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: acts as another user";
    Attacked::SetUp();
    Start(/*tls=*/false);
  }
  // A process of the user as the attach socket knows it; its ring.
  struct Attached {
    int fd = -1;
    plan::RingLayout* ring = nullptr;
  };
  Attached AttachAs(uid_t uid, uint32_t rails = 1) {
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
    request.rail_count = rails;
    plan::SetText("test", request.job);
    for (uint32_t i = 0; i < rails; ++i) plan::SetText(i == 0 ? Address(0, 0) : "rail-" + std::to_string(i), request.rails[i].name);
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
  // Processor time of the core's thread, which is the first.
  int64_t CoreTicks() {
    const std::string pid = std::to_string(daemons_[0]->pid());
    const std::string stat = ReadFile("/proc/" + pid + "/task/" + pid + "/stat");
    std::istringstream fields(stat.substr(stat.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    int64_t user = 0, system = 0;
    fields >> user >> system;
    return user + system;
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

// Many streams that ask for much, and have no window for the answer.
TEST_F(UserPressureTest, AnswersThatNobodyTakes) {
  std::vector<Attached> all;
  for (int i = 0; i < 64; ++i) all.push_back(AttachAs(kNobody, plan::kAttachRailsMax));
  const std::string no_window("\0\x4\0\0\0\0", 6);
  std::vector<std::unique_ptr<Http2Attacker>> attackers;
  for (int connection = 0; connection < 16; ++connection) {
    auto attacker = Http2Attacker::Local(RunDir(0) + "/r2ccd.sock", kNobody);
    ASSERT_NE(attacker, nullptr);
    ASSERT_TRUE(attacker->Send(Http2Attacker::Preface() + Http2Attacker::Frame(Http2Attacker::kSettings, 0, 0, no_window)));
    for (uint32_t stream = 1; stream < 32; stream += 2)
      attacker->Send(Http2Attacker::Frame(Http2Attacker::kHeaders, 4, stream, Http2Attacker::Request("/r2cc.v1.Control/ListJobs")) +
                     Http2Attacker::Frame(Http2Attacker::kData, 1, stream, std::string(5, '\0')));
    attackers.push_back(std::move(attacker));
  }
  AwaitAnswers(5);
  ExpectUnharmed();
  EXPECT_LT(MemoryKb(daemons_[0]->pid(), "VmHWM") - before_kb_, 40 << 10);
  for (const Attached& one : all) {
    if (one.ring != nullptr) munmap(one.ring, sizeof(plan::RingLayout));
    close(one.fd);
  }
}

// A process that does nothing but ring: the core, which has real-time priority, must not follow it.
TEST_F(UserPressureTest, DoorbellsWithoutEnd) {
  const Attached job = AttachAs(kNobody);
  ASSERT_NE(job.ring, nullptr);
  std::atomic<bool> over = false;
  std::atomic<uint64_t> rung = 0;
  std::thread ringer([&] {
    while (!over)
      if (send(job.fd, &plan::kDoorbellEvidence, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) ++rung;
  });
  const int64_t before_ticks = CoreTicks();
  const Nanos begin = Now();
  WaitUntil([&] { return Now() - begin > 3 * kNanosPerSecond; });
  const double core_s = static_cast<double>(CoreTicks() - before_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  std::printf("%llu doorbells in 3 s, %.2f s of the core's processor time\n", static_cast<unsigned long long>(rung), core_s);
  ExpectUnharmed();
  over = true;
  ringer.join();
  EXPECT_LT(core_s, 0.5);
  munmap(job.ring, sizeof(plan::RingLayout));
  close(job.fd);
}

// First by somebody who knows nothing, then by somebody who has read the number of the node's key from the rail's network.
TEST_F(UserPressureTest, AFloodOnTheProbesPort) {
  std::vector<v1::NodeView> answers;
  (void)Push(Channel(0, nullptr, /*tls=*/false), {}, &answers);
  ASSERT_FALSE(answers.empty());
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(answers[0].nics(0).probe_port()));
  ASSERT_EQ(inet_pton(AF_INET, Address(0, 0).c_str(), &to.sin_addr), 1);
  std::string probe(72, '\1');
  std::memcpy(probe.data(), "R2RP", 4);
  const uint64_t nonce = answers[0].probe_nonce();
  ASSERT_NE(nonce, 0u);
  const auto flood = [&](const char* what) {
    std::atomic<bool> over = false;
    std::atomic<uint64_t> sent = 0;
    std::thread sender([&] {
      const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      while (!over) sent += sendto(fd, probe.data(), probe.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) > 0;
      close(fd);
    });
    const int64_t before_ticks = CoreTicks();
    const uint64_t answered = Answered();
    const Nanos begin = Now();
    WaitUntil([&] { return Now() - begin > 4 * kNanosPerSecond; });
    const double core_s = static_cast<double>(CoreTicks() - before_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
    const uint64_t more = Answered() - answered;
    ExpectUnharmed();
    over = true;
    sender.join();
    std::printf("%s: %llu datagrams in 4 s, %.2f s of the core's processor time, %llu probes of the rail answered\n", what,
                static_cast<unsigned long long>(sent), core_s, static_cast<unsigned long long>(more));
    EXPECT_GT(sent, 100'000u);
    EXPECT_LT(core_s, 0.5);
    return more;
  };
  AwaitAnswers(5);
  EXPECT_GT(flood("a stranger"), 5u) << "real probes pass as if there was no flood";
  EXPECT_GT(MetricOf("r2cc_probes_refused_total{reason=\"filtered\"}"), 100'000);
  EXPECT_EQ(MetricOf("r2cc_probes_refused_total{reason=\"overflow\"}"), 0);
  std::memcpy(probe.data() + 8, &nonce, sizeof(nonce));
  EXPECT_GT(flood("somebody on the way"), 5u) << "its address is kept out, and the others' probes pass";
  EXPECT_GT(MetricOf("r2cc_probes_refused_total{reason=\"over_rate\"}"), 0);
  ExpectSound();
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
  up.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkUp);
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
