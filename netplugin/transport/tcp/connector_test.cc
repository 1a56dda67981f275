// Calls on loopback.
#include "netplugin/transport/tcp/connector.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>

namespace r2cc::net {
namespace {

constexpr int kPatienceMs = 5000;

class CallTest : public testing::Test {
 protected:
  CallTest() {
    ParseAddress("127.0.0.1", 0, &source_.address);
    std::string error;
    listener_ = Listen(source_, &port_, &error);
    to_ = source_.address;
    to_.set_port(port_);
  }

  void Dial() {
    int failure = 0;
    UniqueFd fd = Connect(source_, to_, SocketUse::kControl, &failure);
    ASSERT_TRUE(fd) << failure;
    call_ = std::make_unique<Connector>(&poller_, std::move(fd), Encode(Hello{.nonce = 7}),
                                        [this](Connector::Outcome outcome, const HelloReply& reply, std::unique_ptr<PacketStream> stream) {
                                          outcome_ = outcome;
                                          reason_ = reply.reason;
                                          stream_ = std::move(stream);
                                          call_.reset();  // as callers may
                                        });
  }
  UniqueFd Answer() {
    for (int i = 0; i < kPatienceMs; ++i) {
      int failure = 0;
      UniqueFd fd = Accept(listener_.get(), &failure);
      if (fd) return fd;
      poller_.Wait(1);
    }
    return UniqueFd();
  }
  void Await() {
    for (int i = 0; i < kPatienceMs && !outcome_.has_value(); ++i) poller_.Wait(1);
    ASSERT_TRUE(outcome_.has_value());
  }
  void SendText(int fd, const Bytes& bytes) { ASSERT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size())); }

  Poller poller_;
  Source source_;
  SocketAddress to_;
  uint16_t port_ = 0;
  UniqueFd listener_;
  std::unique_ptr<Connector> call_;
  std::optional<Connector::Outcome> outcome_;
  std::string reason_;
  std::unique_ptr<PacketStream> stream_;
};

TEST_F(CallTest, AReplyEndsItWithTheConnection) {
  Dial();
  UniqueFd other = Answer();
  ASSERT_TRUE(other);
  SendText(other.get(), Encode(HelloReply{.accepted = true, .reason = "welcome"}));
  Await();
  EXPECT_EQ(*outcome_, Connector::Outcome::kReplied);
  EXPECT_EQ(reason_, "welcome");
  ASSERT_NE(stream_, nullptr);
  PacketStream theirs(std::move(other));
  Bytes packet;
  bool whole = false;
  EXPECT_EQ(theirs.ReadOne(&packet, &whole), PacketStream::State::kOpen);
  Hello hello;
  EXPECT_TRUE(whole && Decode(packet, &hello));
  EXPECT_EQ(hello.nonce, 7u);
}

TEST_F(CallTest, NobodyListens) {
  listener_.Close();
  Dial();
  Await();
  EXPECT_EQ(*outcome_, Connector::Outcome::kRefused);
}

TEST_F(CallTest, SomethingElseAnswers) {
  Dial();
  const UniqueFd other = Answer();
  ASSERT_TRUE(other);
  const std::string text = "HTTP/1.1 400 Bad Request\r\n\r\n";
  SendText(other.get(), Bytes(text.begin(), text.end()));
  Await();
  EXPECT_NE(*outcome_, Connector::Outcome::kReplied);
}

TEST_F(CallTest, TheOtherEndHangsUp) {
  Dial();
  UniqueFd other = Answer();
  ASSERT_TRUE(other);
  other.Close();
  Await();
  EXPECT_EQ(*outcome_, Connector::Outcome::kBroken);
}

TEST_F(CallTest, ConnectedAndNotAnswered) {
  Dial();
  for (int i = 0; i < kPatienceMs && !call_->connected(); ++i) poller_.Wait(1);
  EXPECT_TRUE(call_->connected()) << "the kernel answers, whatever the process does";
  EXPECT_FALSE(outcome_.has_value());
  call_.reset();
  EXPECT_FALSE(outcome_.has_value()) << "who hangs up is not called";
}

}  // namespace
}  // namespace r2cc::net
