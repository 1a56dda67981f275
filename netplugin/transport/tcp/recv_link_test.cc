// Who looks at which of a receiver's sockets, over real pairs of them: its poller, NCCL's threads, workers.
#include "netplugin/transport/tcp/recv_link.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "netplugin/flow/tuning.h"
#include "netplugin/transport/recv_peer.h"
#include "netplugin/transport/tcp/bulk.h"
#include "netplugin/transport/tcp/endpoint.h"
#include "netplugin/transport/tcp/tcp_connection.h"
#include "netplugin/transport/tcp/tcp_transport.h"

namespace r2cc::net {
namespace {

constexpr FlowId kFlow = 1, kOtherFlow = 2;
constexpr uint64_t kSession = 5;
constexpr uint64_t kNonce = 6;
// After so many looks at the latest a socket need not be told of.
constexpr int kLooksMost = 100;

enum class Kind { kUnix, kTcp };

// Two connected sockets.
void MakePair(Kind kind, int (&fds)[2]) {
  if (kind == Kind::kUnix) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    return;
  }
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fds[1], reinterpret_cast<sockaddr*>(&address), length), 0);
  fds[0] = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
}

struct RecvLinkTest : testing::Test {
  // `missing`: so many of its sockets are not attached.
  explicit RecvLinkTest(int workers = 0, uint8_t sockets = 1, Kind kind = Kind::kUnix, uint8_t missing = 0) {
    std::string error;
    const auto log = [](LogLevel, const std::string&) {};
    transport = TcpTransport::Make({.congestion = "system", .workers = workers}, &poller, &clock, log, {}, &error);
    EXPECT_NE(transport, nullptr) << error;
    const Rail rail;
    Endpoint nowhere;
    EXPECT_TRUE(transport->Listen(rail, &nowhere, &error)) << error;
    transport->StartThreads(1);
    host.clock = &clock;
    host.oob_transport = transport.get();
    host.transports = {transport.get()};
    host.nonce = kNonce;
    host.silence = host.deadline = kNanosPerSecond;
    host.rails.emplace_back();
    Hello hello{.kind = ConnectionKind::kLink, .session = kSession, .incarnation = 1};
    hello.rails.resize(1);
    peer = std::make_shared<RecvPeer>(&host, hello, [this](FlowId flow, uint64_t) { return flow == kFlow ? &comm : &other_comm; });
    hello.endpoint = PathEndpointOf({.control = true, .sockets = sockets});
    control = std::make_unique<PacketStream>(Attach(hello));
    for (uint8_t socket = 0; socket < sockets - missing; ++socket) {
      hello.endpoint = PathEndpointOf({.socket = socket, .sockets = sockets});
      senders.push_back(std::make_unique<BulkSender>(Attach(hello, kind, socket == 0), tag, false));
    }
    sender = senders.front().get();
    for (const FlowId flow : {kFlow, kOtherFlow}) EXPECT_TRUE(control->Send(Encode(frames::FlowOpen{.flow = flow}, tag)));
    EXPECT_TRUE(peer->Service());
  }
  ~RecvLinkTest() override {
    {
      const PeerLock lock(*peer);
      peer->Shut();
    }
    transport->StopThreads();
    peer.reset();
  }

  // The sender's end of a connection that the peer has now.
  UniqueFd Attach(const Hello& hello, Kind kind = Kind::kUnix, bool first_bulk = false) {
    int fds[2] = {-1, -1};
    MakePair(kind, fds);
    if (first_bulk) bulk_fd = fds[0];
    std::unique_ptr<Connection> connection = std::make_unique<TcpConnection>(std::make_unique<PacketStream>(UniqueFd(fds[0])));
    std::string reason;
    EXPECT_TRUE(peer->AttachLink(hello, {.accepted = true}, &connection, &reason)) << reason;
    // The answer to the greeting comes first.
    UniqueFd theirs(fds[1]);
    PacketStream stream(std::move(theirs));
    Bytes reply;
    bool whole = false;
    EXPECT_EQ(stream.ReadOne(&reply, &whole), PacketStream::State::kOpen);
    EXPECT_TRUE(whole);
    return stream.Release();
  }

  void Post() { peer->Submit(kFlow, buffer, sizeof(buffer)); }
  void Send(bool eager = true) {
    const auto pull = [this, eager](Chunk* chunk) {
      *chunk = {kFlow, sent++, sizeof(buffer), 128, 0, data, sizeof(buffer), eager};
      return true;
    };
    uint64_t sent_bytes = 0;
    ASSERT_EQ(sender->Pump(pull, 1, &sent_bytes), BulkSender::Result::kMore);
  }
  // The I/O thread would wake up.
  bool Wakes() const {
    pollfd fd{peer->ports().front()->fd(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }
  bool AllHasCome() const { return comm.done_through == sent; }
  // What the sender has heard of so far; 0: nothing.
  MessageId LastAcknowledged() {
    control->Read([this](std::span<const uint8_t> packet) {
      Frame frame;
      EXPECT_TRUE(Decode(packet, tag, &frame));
      if (const auto* const report = std::get_if<FlowReport>(&frame)) acknowledged = std::max(acknowledged, report->placed_through);
      return true;
    });
    return acknowledged;
  }
  // NCCL's thread looks for one message after another. True if the I/O thread would have woken up for the last one.
  bool WakesAfterLooks(int looks) {
    bool wakes = false;
    for (int i = 0; i < looks; ++i) {
      Post();
      Send();
      wakes = Wakes();
      peer->Progress(kFlow);
      EXPECT_TRUE(AllHasCome());
    }
    return wakes;
  }

  FakeClock clock;
  Poller poller;
  std::unique_ptr<TcpTransport> transport;
  Host host;
  const uint32_t tag = SessionTag(kNonce, kSession);
  Comm comm, other_comm;
  std::shared_ptr<RecvPeer> peer;
  std::unique_ptr<PacketStream> control;
  std::vector<std::unique_ptr<BulkSender>> senders;
  BulkSender* sender = nullptr;  // the first
  MessageId sent = 0, acknowledged = 0;
  int bulk_fd = -1;  // the peer's end of the first bulk socket
  std::byte data[8] = {};
  char buffer[8];
};

TEST_F(RecvLinkTest, ASocketThatIsLookedAtNowAndThenStaysWithThePoller) {
  EXPECT_TRUE(WakesAfterLooks(2));
  // What the poller finds is nobody's look.
  for (int i = 0; i < kLooksMost; ++i) {
    Post();
    Send();
    ASSERT_TRUE(Wakes());
    EXPECT_TRUE(peer->Service());
    EXPECT_TRUE(AllHasCome());
  }
}

TEST_F(RecvLinkTest, ASocketThatIsLookedAtAllTheTimeWakesNobody) { EXPECT_FALSE(WakesAfterLooks(kLooksMost)); }

TEST_F(RecvLinkTest, APollReadsBytesWithoutAnEvent) {
  ASSERT_FALSE(WakesAfterLooks(kLooksMost));
  Post();
  Send();
  ASSERT_FALSE(Wakes());
  EXPECT_TRUE(peer->Service());
  EXPECT_TRUE(AllHasCome());
}

TEST_F(RecvLinkTest, WithTheTickAllSocketsAreWatchedAgain) {
  ASSERT_FALSE(WakesAfterLooks(kLooksMost));
  Post();
  Send();
  peer->Tick();
  EXPECT_TRUE(AllHasCome());
  Post();
  Send();
  EXPECT_TRUE(Wakes());
  // And they leave again.
  peer->Progress(kFlow);
  EXPECT_FALSE(WakesAfterLooks(kLooksMost));
}

TEST_F(RecvLinkTest, TheJobHasItsMessageBeforeTheSenderGetsTheAcknowledgement) {
  constexpr MessageId kTogether = kEagerWindow / 2;
  for (MessageId i = 0; i < kTogether; ++i) Post();
  ASSERT_EQ(LastAcknowledged(), 0u);
  for (MessageId i = 0; i < kTogether; ++i) {
    Send();
    peer->Progress(kFlow);
    EXPECT_TRUE(AllHasCome());
    EXPECT_EQ(LastAcknowledged(), 0u) << "after message " << i;
    if (i + 1 < kTogether) peer->Progress(kFlow);
  }
  peer->Progress(kFlow);
  EXPECT_EQ(LastAcknowledged(), kTogether);
}

TEST_F(RecvLinkTest, AWaitingSenderGetsTheAcknowledgementInTheSameTurn) {
  Post();
  Send(false);
  peer->Progress(kFlow);
  EXPECT_TRUE(AllHasCome());
  EXPECT_EQ(LastAcknowledged(), 1u);
}

struct TwoSocketsTest : RecvLinkTest {
  explicit TwoSocketsTest(Kind kind = Kind::kUnix) : RecvLinkTest(0, 2, kind) {}
  void Send(FlowId flow, MessageId message, uint32_t bytes, size_t socket) {
    peer->Submit(flow, received, sizeof(received));
    senders[socket]->Load({flow, message, bytes, sizeof(received), 0, content, bytes, true});
    uint64_t sent_bytes = 0;
    EXPECT_EQ(senders[socket]->Write(&sent_bytes), BulkSender::Result::kMore);
  }

  std::byte content[64 * 1024] = {};
  char received[64 * 1024];
};

TEST_F(TwoSocketsTest, TheSocketOfBulkIsNotPolledForLaterSmallMessages) {
  Send(kFlow, 0, 16 * 1024, 1);
  EXPECT_TRUE(peer->Service());
  ASSERT_EQ(comm.done_through, 1u);
  // Of another flow, so that nothing tells where those of this one will come from.
  for (MessageId message = 0; message < tuning::kSmallMessagesMost; ++message) {
    Send(kOtherFlow, message, 8, 0);
    peer->Progress(kOtherFlow);
    ASSERT_EQ(other_comm.done_through, message + 1);
  }
  Send(kFlow, 1, 8, 0);
  peer->Progress(kFlow);
  EXPECT_EQ(comm.done_through, 2u);
}

TEST_F(TwoSocketsTest, DuringBulkTheSenderGetsTheAcknowledgementInTheSameTurn) {
  constexpr MessageId kTogether = kEagerWindow / 2;
  Send(kFlow, 0, 16 * 1024, 1);
  EXPECT_TRUE(peer->Service());
  for (MessageId message = 1; message < kTogether; ++message) {
    Send(kFlow, message, 8, 0);
    peer->Progress(kFlow);
    ASSERT_EQ(comm.done_through, message + 1);
  }
  EXPECT_EQ(LastAcknowledged(), kTogether);
}

struct TcpSocketsTest : TwoSocketsTest {
  TcpSocketsTest() : TwoSocketsTest(Kind::kTcp) {}
  void Move(uint32_t bytes) {
    Send(kFlow, sent++, bytes, 0);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!AllHasCome() && std::chrono::steady_clock::now() < deadline) EXPECT_TRUE(peer->Service());
    ASSERT_TRUE(AllHasCome());
  }
  // Whether the kernel acknowledges at once what comes there; a new connection's does.
  bool Quick() const {
    int value = -1;
    socklen_t length = sizeof(value);
    EXPECT_EQ(getsockopt(bulk_fd, IPPROTO_TCP, TCP_QUICKACK, &value, &length), 0);
    return value != 0;
  }
};

TEST_F(TcpSocketsTest, TheKernelMayAcknowledgeSmallMessagesLater) {
  ASSERT_TRUE(Quick());
  Move(8);
  EXPECT_FALSE(Quick());
}

TEST_F(TcpSocketsTest, TheKernelAcknowledgesBulkAtOnce) {
  Move(16 * 1024);
  EXPECT_TRUE(Quick());
  for (int i = 0; i < tuning::kSmallMessagesMost; ++i) Move(8);
  ASSERT_FALSE(Quick());
  Move(16 * 1024);
  EXPECT_TRUE(Quick());
}

// A peer proves one socket twice, and has not attached the other one.
struct HalfALinkTest : RecvLinkTest {
  HalfALinkTest() : RecvLinkTest(1, 2, Kind::kUnix, 1) {}
};

TEST_F(HalfALinkTest, ASecondProofOnOneSocketProvesNothing) {
  for (int i = 0; i < 2; ++i) {
    sender->SendProof(ProofPattern(kSession, 0, 1, 0));
    uint64_t sent_bytes = 0;
    EXPECT_EQ(sender->Write(&sent_bytes), BulkSender::Result::kMore);
  }
  peer->Service();
  peer->Tick();
  EXPECT_FALSE(peer->session().links().up(0)) << "it broke the protocol";
}

constexpr uint32_t kLargeBytes = 256 * 1024;

struct RecvWorkersTest : RecvLinkTest {
  RecvWorkersTest() : RecvLinkTest(1, 2) {
    for (uint8_t socket = 0; socket < senders.size(); ++socket) {
      senders[socket]->SendProof(ProofPattern(kSession, 0, 1, socket));
      EXPECT_EQ(Write(socket), BulkSender::Result::kMore);
    }
    for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7 + i / 251);
    EXPECT_TRUE(peer->Service());
    peer->Submit(kFlow, received.data(), received.size());
  }
  BulkSender::Result Write(size_t socket) {
    uint64_t sent_bytes = 0;
    return senders[socket]->Write(&sent_bytes);
  }
  void Load(size_t socket, uint32_t bytes) { senders[socket]->Load({kFlow, sent++, bytes, kLargeBytes, 0, large.data(), bytes, false}); }
  // On the second socket; for at most 30 s.
  void WriteUntil(FunctionRef<bool()> done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      if (senders[1]->busy()) Write(1);
      std::this_thread::yield();
    }
  }

  std::vector<std::byte> large = std::vector<std::byte>(kLargeBytes), received = std::vector<std::byte>(kLargeBytes);
};

TEST_F(RecvWorkersTest, NobodyButAWorkerMovesWhatComesByAnyButTheFirstSocket) {
  Load(1, kLargeBytes);
  WriteUntil([this] { return AllHasCome(); });
  ASSERT_TRUE(AllHasCome());
  EXPECT_EQ(received, large);
}

TEST_F(RecvWorkersTest, TheCallerReadsTheFirstSocket) {
  constexpr uint32_t kSmallBytes = 8;
  Load(0, kSmallBytes);
  EXPECT_EQ(Write(0), BulkSender::Result::kMore);
  // It came first, and the worker has moved what came after it.
  std::vector<std::byte> second(kLargeBytes);
  peer->Submit(kFlow, second.data(), second.size());
  Load(1, kLargeBytes);
  const uint64_t before = host.rails.front().received_bytes.value();
  WriteUntil([&] { return host.rails.front().received_bytes.value() - before >= kLargeBytes; });
  EXPECT_EQ(host.rails.front().received_bytes.value() - before, kLargeBytes);
  EXPECT_EQ(comm.done_through, 0u);
  peer->Progress(kFlow);
  peer->Tick();
  EXPECT_TRUE(AllHasCome());
}

}  // namespace
}  // namespace r2cc::net
