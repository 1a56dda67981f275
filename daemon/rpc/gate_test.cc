// A gate between a client that the test plays and a server that it plays too.
#include "daemon/rpc/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

constexpr int kPatienceMs = 10'000;

// The preface of HTTP/2 and empty SETTINGS.
std::string Preface() { return std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\4\0\0\0\0\0", 9); }
// HEADERS of a stream that has no more to send, with one indexed field.
std::string Headers(char stream) { return std::string("\0\0\1\1\5\0\0\0", 8) + std::string(1, stream) + "\x82"; }

// One that never proves who it is.
class SilentEnd final : public ClientEnd {
 public:
  using ClientEnd::ClientEnd;
  absl::Status Greet() override { return absl::UnavailableError("not yet"); }
};

class GateTest : public testing::Test {
 protected:
  void SetUp() override {
    OnLoop([this] {
      gate_ = std::make_unique<Gate>(
          Gate::Parts{&thread_.loop(),
                      &origins_,
                      &refusals_,
                      "test",
                      {.message_bytes_max = 1000, .pending_bytes_max = 1000, .share_pending_bytes_max = 2000, .streams_max = 2},
                      [this](int fd) { servers_.push_back(fd); },
                      [this](const Origin&) { return admission_; }});
    });
  }
  void TearDown() override {
    OnLoop([this] { gate_.reset(); });
    for (const int fd : clients_) close(fd);
    for (const int fd : servers_) close(fd);
  }
  void OnLoop(Task task) { ASSERT_TRUE(thread_.loop().RunAndWait(std::move(task))); }
  // The client's end of a new connection.
  int Connect(Caller::Kind kind, bool silent = false) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    clients_.push_back(ends[0]);
    Caller caller;
    caller.kind = kind;
    caller.address = "10.0.0.1:" + std::to_string(clients_.size());
    std::unique_ptr<ClientEnd> client;
    if (silent)
      client = std::make_unique<SilentEnd>(ends[1]);
    else
      client = std::make_unique<ClientEnd>(ends[1]);
    OnLoop([&] { gate_->Take(std::move(client), std::move(caller)); });
    return ends[0];
  }
  static void Write(int fd, const std::string& bytes) {
    ASSERT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // This many bytes, or those that came before the end.
  static std::string Read(int fd, size_t bytes) {
    std::string text;
    for (pollfd ready{fd, POLLIN, 0}; text.size() < bytes && poll(&ready, 1, kPatienceMs) == 1;) {
      char chunk[4096];
      const ssize_t got = recv(fd, chunk, std::min(sizeof(chunk), bytes - text.size()), 0);
      if (got <= 0) break;
      text.append(chunk, static_cast<size_t>(got));
    }
    return text;
  }
  std::string Refused() {
    std::string reasons;
    for (const auto& refusal : refusals_.List()) reasons += refusal.reason() + "=" + std::to_string(refusal.times()) + " ";
    return reasons;
  }

  ScopedLoopThread thread_{"gate-test"};
  Origins origins_;
  Refusals refusals_{[] { return int64_t{1}; }};
  absl::StatusOr<Gate::Admission> admission_ =
      Gate::Admission{.share = "uid 7", .share_max = 2, .group = "users", .group_max = 8, .streams_per_second = 10, .streams_burst = 10};
  std::unique_ptr<Gate> gate_;
  std::vector<int> clients_;
  std::vector<int> servers_;  // gRPC's ends
};

TEST_F(GateTest, CarriesTheBytesOfOneThatItLetsIn) {
  const int client = Connect(Caller::Kind::kLocal);
  EXPECT_TRUE(servers_.empty()) << "an idle one costs gRPC nothing";
  const std::string asked = Preface() + Headers(1);
  Write(client, asked);
  OnLoop([] {});
  while (servers_.empty()) OnLoop([] {});
  EXPECT_EQ(Read(servers_[0], asked.size()), asked);
  EXPECT_NE(origins_.Of("fd:" + std::to_string(servers_[0])), nullptr);
  const std::string answer(100'000, 'x');  // more than a turn of the gate and the socket's buffer take
  std::string received;
  for (size_t sent = 0; sent < answer.size() || received.size() < answer.size();) {
    const ssize_t put = sent < answer.size() ? send(servers_[0], answer.data() + sent, answer.size() - sent, MSG_DONTWAIT) : 0;
    if (put > 0) sent += static_cast<size_t>(put);
    const std::string more = Read(client, std::min<size_t>(4096, answer.size() - received.size()));
    ASSERT_FALSE(more.empty());
    received += more;
  }
  EXPECT_EQ(received, answer);
}

TEST_F(GateTest, ARefusedCallerGetsTheReasonAsTheAnswerToItsCall) {
  admission_ = absl::PermissionDeniedError("no certificate");
  const int client = Connect(Caller::Kind::kLocal);
  Write(client, Preface() + Headers(1));
  EXPECT_THAT(Read(client, 4096), HasSubstr("no certificate"));
  EXPECT_TRUE(servers_.empty());
}

TEST_F(GateTest, OneTooManyOfAShareIsRefusedAndCounted) {
  for (int i = 0; i < 2; ++i) Connect(Caller::Kind::kLocal);
  EXPECT_EQ(Refused(), "");
  const int third = Connect(Caller::Kind::kLocal);
  EXPECT_EQ(Refused(), "too-many=1 ");
  Write(third, Preface() + Headers(1));
  EXPECT_THAT(Read(third, 4096), HasSubstr("uid 7 has 2 connections already"));
  close(clients_[0]);
  clients_.erase(clients_.begin());
  OnLoop([] {});
  Connect(Caller::Kind::kLocal);
  EXPECT_EQ(Refused(), "too-many=1 ") << "a place came back";
}

TEST_F(GateTest, StreamsBeyondTheAllowanceEndTheConversation) {
  const int client = Connect(Caller::Kind::kLocal);
  std::string flood = Preface();
  for (char stream = 1; stream < 41; stream = static_cast<char>(stream + 2)) flood += Headers(stream);
  Write(client, flood);
  while (Refused().empty()) OnLoop([] {});
  EXPECT_EQ(Refused(), "flood=1 ");
}

TEST_F(GateTest, ManyOfOneAddressThatProveNothing) {
  for (size_t i = 0; i < GatePolicy::kGreetingsPerAddressMax; ++i) Connect(Caller::Kind::kNobody, /*silent=*/true);
  EXPECT_EQ(Refused(), "");
  const int one_more = Connect(Caller::Kind::kNobody, /*silent=*/true);
  EXPECT_EQ(Refused(), "too-many=1 ");
  EXPECT_EQ(Read(one_more, 1), "") << "closed at once";
}

TEST_F(GateTest, OpenConnectionsAreJudgedAgain) {
  const int client = Connect(Caller::Kind::kLocal);
  Write(client, Preface());
  OnLoop([this] {
    admission_ = absl::PermissionDeniedError("its certificate is refused");
    gate_->JudgeAll();
  });
  EXPECT_EQ(Read(client, 1), "") << "its conversation ends";
}

}  // namespace
}  // namespace r2cc::daemon
