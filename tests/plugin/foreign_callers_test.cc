// A live job and everybody who may knock at its ports: scanners, silent connections, half greetings, other releases, wrong nonces, and a
// peer that belongs to the job and breaks the protocol. The job goes on undisturbed, without a failover, and counts whom it refused.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "netplugin/transport/handle.h"
#include "netplugin/transport/tcp/endpoint.h"
#include "tests/control/perf_process.h"
#include "tests/plugin/foreign_caller.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;
using control::Outcome;
using control::PerfProcess;
using net::Frame;
namespace frames = net::frames;
using net::Hello;
using net::HelloReply;

constexpr char kPlugin[] = "netplugin/libnccl-net-r2cc.so";
constexpr char kFourRails[] = "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4";
// Longer than the job waits for a greeting.
constexpr double kPatienceS = 30;

std::string Tail(const std::string& text) { return text.substr(text.size() - std::min<size_t>(text.size(), 2000)); }

// "refused connections: N" of the job's summary; -1 if it says nothing.
long RefusedBy(const std::string& text) {
  const std::string words = "refused connections: ";
  const size_t at = text.rfind(words);
  return at == std::string::npos ? -1 : std::atol(text.c_str() + at + words.size());
}

size_t Count(const std::string& text, const std::string& words) {
  size_t count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

// What a connection is for.
enum class Path { kOob, kControl, kBulk };
void SetPath(Path path, uint8_t sockets, Hello* hello) {
  hello->kind = path == Path::kOob ? net::ConnectionKind::kOob : net::ConnectionKind::kLink;
  if (path != Path::kOob) hello->endpoint = net::PathEndpointOf({.control = path == Path::kControl, .sockets = sockets});
}

Hello SomeHello() {
  Hello hello;
  hello.nonce = 0x1234;
  hello.target_process = 0x5678;
  hello.session = 9;
  hello.process = 10;
  hello.node = "stranger";
  hello.oob_address = "127.0.0.1";
  hello.oob_port = 1;
  hello.links = 4;
  hello.rails = {{"r0", true, {{}}}};
  return hello;
}

// Sends what no member of the job sends; each must be refused. Returns their number.
int KnockEverywhere(const std::vector<sockaddr_in>& ports, std::vector<ForeignCaller>* silent) {
  std::mt19937 random(7);
  int callers = 0;
  for (const sockaddr_in& port : ports) {
    for (int i = 0; i < 100; ++i, ++callers) EXPECT_TRUE(ForeignCaller(port).connected());
    for (int i = 0; i < 20; ++i, ++callers) {
      std::vector<uint8_t> noise(1 + random() % 4096);
      for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
      ForeignCaller caller(port);
      caller.Send(noise);
      EXPECT_TRUE(caller.AwaitHangUp(kPatienceS));
    }
    const std::string web = "GET / HTTP/1.1\r\n\r\n";
    ForeignCaller browser(port);
    browser.Send({reinterpret_cast<const uint8_t*>(web.data()), web.size()});
    EXPECT_TRUE(browser.AwaitHangUp(kPatienceS));
    ++callers;

    HelloReply reply;
    Hello other_release = SomeHello();
    other_release.wire_least = net::kWireVersion + 1;
    other_release.wire_newest = net::kWireVersion + 7;
    EXPECT_TRUE(ForeignCaller(port).Greet(other_release, &reply));
    EXPECT_FALSE(reply.accepted);
    EXPECT_THAT(reply.reason, testing::HasSubstr("it uses wire version "));
    ++callers;
    for (const Path path : {Path::kOob, Path::kControl, Path::kBulk}) {
      Hello wrong_nonce = SomeHello();
      SetPath(path, 1, &wrong_nonce);
      reply.accepted = true;
      EXPECT_TRUE(!ForeignCaller(port).Greet(wrong_nonce, &reply) || !reply.accepted);
      ++callers;
    }

    const net::Bytes greeting = net::Encode(SomeHello());
    for (int i = 0; i < 3; ++i, ++callers) silent->emplace_back(port);
    for (int i = 0; i < 3; ++i, ++callers) silent->emplace_back(port).Send(std::span<const uint8_t>(greeting).first(20));
    // A greeting that announces as much as a packet may hold, and never comes.
    net::Bytes huge(greeting.begin(), greeting.begin() + net::kPacketHeaderBytes);
    std::memcpy(huge.data() + 8, &net::kControlBodyBytesMax, 4);
    for (int i = 0; i < 10; ++i, ++callers) silent->emplace_back(port).Send(huge);
  }
  return callers;
}

TEST(ForeignCallers, DoNotDisturbALiveJob) {
  setenv("R2CC_ATTACH", "none", 1);
  setenv("R2CC_LOG", "info", 1);
  const int root_port = control::FreePort();
  std::vector<std::unique_ptr<PerfProcess>> ranks;
  for (const char* rank : {"0", "1"})
    ranks.push_back(std::make_unique<PerfProcess>(
        kPlugin, kFourRails,
        std::vector<std::string>{"--rank", rank, "--nranks", "2", "--root", "127.0.0.1:" + std::to_string(root_port), "-b", "4M",
                                 "--seconds", "600", "--progress", "2", "--timeout", "60", "--json", "--debug"}));
  ASSERT_TRUE(ranks[0]->WaitForError("iteration")) << Tail(ranks[0]->Finish(0).err);

  std::vector<int> knocks;
  std::vector<size_t> before_bytes;
  std::vector<ForeignCaller> silent;
  for (const auto& rank : ranks) {
    std::vector<sockaddr_in> ports = ListenersOf(rank->pid());
    std::erase_if(ports, [root_port](const sockaddr_in& port) { return ntohs(port.sin_port) == root_port; });
    ASSERT_EQ(ports.size(), 5u);  // one per rail, and the out-of-band one
    before_bytes.push_back(ResidentPeakBytes(rank->pid()));
    knocks.push_back(KnockEverywhere(ports, &silent));
  }
  for (ForeignCaller& caller : silent) EXPECT_TRUE(caller.AwaitHangUp(kPatienceS));
  constexpr size_t kMemoryMostBytes = 200 << 20;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    EXPECT_LT(ResidentPeakBytes(ranks[rank]->pid()) - before_bytes[rank], kMemoryMostBytes) << "rank " << rank;

  kill(ranks[0]->pid(), SIGTERM);  // an orderly end of the whole run
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const Outcome outcome = ranks[rank]->Finish(60);
    EXPECT_EQ(outcome.exit_code, 0) << Tail(outcome.err);
    EXPECT_EQ(Count(outcome.err, " 0 failovers"), 4u) << Tail(outcome.err);
    EXPECT_GE(RefusedBy(outcome.err), knocks[rank]) << Tail(outcome.err);
    if (rank > 0) continue;
    EXPECT_EQ(control::JsonNumber(outcome.LastLine(), "wrong_elements"), 0);
    EXPECT_EQ(control::JsonNumber(outcome.LastLine(), "late_writes"), 0);
    EXPECT_THAT(outcome.LastLine(), testing::HasSubstr("\"pass\":true"));
  }
}

// A process that moves data over one flow until `stop` has no writer any more, and says so every now and then.
int MoveUntil(int stop) {
  const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
  void* context = nullptr;
  R2CC_MUST(net->Init(&context) == Result::kSuccess);
  Pair pair = Pair::Open(net.get(), context, 0);
  for (uint64_t number = 0;; ++number) {
    pair.Transfer(number, 100'000, 100'000);
    // The job itself must still get descriptors.
    const int fd = dup(stop);
    R2CC_MUST(fd >= 0);
    close(fd);
    if (number % 100 == 0) std::fprintf(stderr, "moved %llu.\n", static_cast<unsigned long long>(number));
    pollfd ended{stop, 0, 0};
    if (poll(&ended, 1, 0) > 0) break;
  }
  pair.Close();
  R2CC_MUST(net->Finalize(context) == Result::kSuccess);
  return 0;
}

// More connections at once than a process usually has descriptors: the job neither runs out of them nor stops.
TEST(ForeignCallers, AThousandAtOnce) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  int stop[2];
  ASSERT_EQ(pipe(stop), 0);
  OwnProcess process({{"R2CC_LOG", "info"}}, [stop] {
    close(stop[1]);
    const rlimit usual{1024, 1024};
    R2CC_MUST(setrlimit(RLIMIT_NOFILE, &usual) == 0);
    return MoveUntil(stop[0]);
  });
  close(stop[0]);
  ASSERT_TRUE(process.WaitForText("moved 100.")) << process.text();
  const std::vector<sockaddr_in> ports = ListenersOf(process.pid());
  ASSERT_EQ(ports.size(), 5u);
  std::vector<ForeignCaller> crowd;
  for (int i = 0; i < 1200; ++i) crowd.emplace_back(ports[static_cast<size_t>(i) % ports.size()]);
  const size_t moved = Count(process.text(), "moved");
  EXPECT_TRUE(Await(kLimitS, [&] { return Count(process.text(), "moved") >= moved + 3; })) << Tail(process.text());
  // Who waits longest is sent away first, so that an honest peer gets in.
  EXPECT_TRUE(crowd.front().AwaitHangUp(kPatienceS));
  crowd.clear();
  close(stop[1]);
  EXPECT_EQ(process.Wait(), 0) << Tail(process.text());
}

// ---- a member of the job that breaks the protocol ----

// What a member knows: the handle.
struct Member {
  net::Handle handle;
  sockaddr_in oob{};

  Hello Greeting(Path path, uint64_t session) const {
    Hello hello = SomeHello();
    SetPath(path, 1, &hello);
    hello.nonce = handle.nonce;
    hello.target_process = handle.process;
    hello.session = session;
    for (const char* const nic : {"r0", "r1", "r2", "r3"}) hello.rails.push_back({nic, true, {{}}});
    return hello;
  }
  // Greets and is taken in. The answer's rails say where links connect to.
  ForeignCaller Enter(uint64_t session, std::vector<net::RailInfo>* rails) const {
    ForeignCaller channel(oob);
    HelloReply reply;
    R2CC_MUST(channel.Greet(Greeting(Path::kOob, session), &reply) && reply.accepted);
    *rails = reply.rails;
    return channel;
  }
  uint32_t Tag(uint64_t session) const { return net::SessionTag(handle.nonce, session); }
};

sockaddr_in AddressOf(const net::RailInfo& rail) {
  R2CC_MUST(rail.endpoints.size() == 1);
  const auto address = net::AddressOf(rail.endpoints[0].bytes);
  R2CC_MUST(address.has_value() && address->storage.ss_family == AF_INET);
  return reinterpret_cast<const sockaddr_in&>(address->storage);
}

// True if a connection of this link was taken in.
bool OpenLink(const Member& member, const net::RailInfo& rail, uint64_t session, Path path, net::LinkId link, net::Incarnation incarnation,
              ForeignCaller* socket) {
  Hello hello = member.Greeting(path, session);
  hello.link = link;
  hello.incarnation = incarnation;
  hello.local_rail = link;
  hello.remote_rail = link;
  *socket = ForeignCaller(AddressOf(rail));
  HelloReply reply;
  return socket->Greet(hello, &reply) && reply.accepted;
}

// Refused in so many words, or taken in and hung up on at once.
bool RefusesLink(const Member& member, const net::RailInfo& rail, uint64_t session, Path path, net::LinkId link,
                 net::Incarnation incarnation) {
  ForeignCaller socket(AddressOf(rail));
  return !OpenLink(member, rail, session, path, link, incarnation, &socket) || socket.AwaitHangUp(kPatienceS);
}

void GarbledChannels(const Member& member) {
  std::mt19937 random(11);
  std::vector<net::RailInfo> rails;
  for (uint64_t session = 100; session < 130; ++session) {
    ForeignCaller channel = member.Enter(session, &rails);
    std::vector<uint8_t> noise(1 + random() % 5000);
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
    channel.Send(noise);
    R2CC_MUST(channel.AwaitHangUp(kPatienceS));
  }
  // A sound frame with another session's tag is no frame.
  ForeignCaller channel = member.Enter(130, &rails);
  channel.Send(net::Encode(frames::Ping{}, member.Tag(130) + 1));
  R2CC_MUST(channel.AwaitHangUp(kPatienceS));
  // Words that are not an initiator's.
  uint64_t session = 140;
  for (const Frame& word : {Frame(net::FlowReport{.flow = 1, .grants = true}), Frame(net::FlowReport{.flow = 1}), Frame(frames::Fenced{}),
                            Frame(frames::Proved{}), Frame(frames::Bye{.flow = 1})}) {
    ForeignCaller other = member.Enter(++session, &rails);
    other.Send(net::Encode(word, member.Tag(session)));
    R2CC_MUST(other.AwaitHangUp(kPatienceS));
  }
}

void ImpossibleRequests(const Member& member) {
  std::vector<net::RailInfo> rails;
  constexpr uint64_t kSession = 200;
  ForeignCaller channel = member.Enter(kSession, &rails);
  for (uint32_t flow = 0; flow < 2000; ++flow) {
    const frames::FlowOpen open{.flow = flow, .listen_id = flow, .rail = flow};  // nobody listens there
    for (const Frame& word : {Frame(open), Frame(frames::FlowEnd{flow}), Frame(frames::ByeAck{flow}),
                              Frame(frames::FencedAck{.link = 3, .incarnation = flow}), Frame(frames::Want{.flow = flow})})
      R2CC_MUST(channel.Send(net::Encode(word, member.Tag(kSession))));
  }
  HelloReply reply;
  // A link, a rail and sockets that there are not.
  for (const net::LinkId link : {net::LinkId{40}, net::LinkId{63}})
    R2CC_MUST(RefusesLink(member, rails[0], kSession, Path::kControl, link, 1));
  Hello no_sockets = member.Greeting(Path::kBulk, kSession);
  no_sockets.incarnation = 1;
  SetPath(Path::kBulk, 0, &no_sockets);
  ForeignCaller socket(AddressOf(rails[0]));
  R2CC_MUST(!socket.Greet(no_sockets, &reply) || !reply.accepted || socket.AwaitHangUp(kPatienceS));
  Hello no_session = member.Greeting(Path::kControl, kSession + 1);
  R2CC_MUST(!ForeignCaller(AddressOf(rails[0])).Greet(no_session, &reply) || !reply.accepted);
  Hello no_rails = member.Greeting(Path::kOob, kSession + 2);
  no_rails.rails.clear();
  R2CC_MUST(!ForeignCaller(member.oob).Greet(no_rails, &reply) || !reply.accepted);
}

void ReplayedIncarnations(const Member& member) {
  constexpr uint64_t kSession = 300;
  std::vector<net::RailInfo> rails;
  ForeignCaller channel = member.Enter(kSession, &rails);
  ForeignCaller control(AddressOf(rails[1]));
  R2CC_MUST(OpenLink(member, rails[1], kSession, Path::kControl, 1, 5, &control));
  R2CC_MUST(RefusesLink(member, rails[1], kSession, Path::kControl, 1, 5));  // it has its channel
  R2CC_MUST(RefusesLink(member, rails[1], kSession, Path::kControl, 1, 4));  // an older one
  channel.Send(net::Encode(frames::Fence{.link = 1, .incarnation = 5}, member.Tag(kSession)));
  R2CC_MUST(control.AwaitHangUp(kPatienceS));
  R2CC_MUST(RefusesLink(member, rails[1], kSession, Path::kBulk, 1, 5));  // an ended one
  R2CC_MUST(OpenLink(member, rails[1], kSession, Path::kControl, 1, 6, &control));
}

void ImpossibleChunks(const Member& member) {
  std::vector<net::RailInfo> rails;
  for (uint64_t session = 400; session < 410; ++session) {
    ForeignCaller channel = member.Enter(session, &rails);
    ForeignCaller control(AddressOf(rails[2])), bulk(AddressOf(rails[2]));
    R2CC_MUST(OpenLink(member, rails[2], session, Path::kControl, 2, 1, &control));
    R2CC_MUST(OpenLink(member, rails[2], session, Path::kBulk, 2, 1, &bulk));
    net::BulkHeader header;
    header.chunk.flow = 77;  // never opened
    header.chunk.message = ~uint64_t{0};
    header.chunk.message_bytes = net::kMessageBytesMax;
    header.chunk.chunk_bytes = 128;
    header.chunk.index = ~uint32_t{0};
    header.chunk.bytes = net::kBulkBytesMax;
    uint8_t bytes[net::kBulkHeaderBytes];
    const uint32_t tag = member.Tag(session) + (session % 2 == 0 ? 0 : 1);
    net::Encode(header, tag, bytes);
    bulk.Send(bytes);
    const std::vector<uint8_t> some(100'000);
    bulk.Send(some);
    if (session % 2 != 0) R2CC_MUST(bulk.AwaitHangUp(kPatienceS));
  }
}

TEST(ForeignCallers, AMemberThatBreaksTheProtocolHarmsNobodyElse) {
  OwnProcess process({{"R2CC_LOG", "info"}}, [] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    Pair pair = Pair::Open(net.get(), context, 0);
    alignas(8) uint8_t bytes[abi::kNetHandleBytesMax];
    void* listen_comm = nullptr;
    R2CC_MUST(net->Listen(context, 0, bytes, &listen_comm) == Result::kSuccess);
    Member member;
    R2CC_MUST(net::ReadHandle(bytes, &member.handle));
    member.oob.sin_family = AF_INET;
    member.oob.sin_port = htons(member.handle.oob_port);
    R2CC_MUST(inet_pton(AF_INET, member.handle.oob_address, &member.oob.sin_addr) == 1);

    std::atomic<bool> over{false};
    std::thread hostile([&] {
      GarbledChannels(member);
      ImpossibleRequests(member);
      ReplayedIncarnations(member);
      ImpossibleChunks(member);
      over = true;
    });
    uint64_t number = 0;
    while (!over) pair.Transfer(number++, 300'000, 300'000);
    hostile.join();
    for (int i = 0; i < 20; ++i) pair.Transfer(number++, 300'000, 300'000);
    R2CC_MUST(number > 20);
    pair.Close();
    R2CC_MUST(net->CloseListen(listen_comm) == Result::kSuccess && net->Finalize(context) == Result::kSuccess);
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << Tail(process.text());
  EXPECT_EQ(Count(process.text(), " 0 failovers"), 4u) << Tail(process.text());
  EXPECT_GT(RefusedBy(process.text()), 5) << Tail(process.text());
}

}  // namespace
}  // namespace r2cc::plugin_test
