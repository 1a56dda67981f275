// Roll calls between sockets of this process, over the loopback interface.
#include "nccl/roll_call.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "nccl/roll_server.h"

namespace r2cc::nccl {
namespace {

using Kind = Verdict::Kind;

// As NCCL makes it: eight bytes, then where the ranks meet.
UniqueId NcclsId(const char* where = "127.0.0.1") {
  UniqueId id{};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(4711);
  inet_pton(AF_INET, where, &address.sin_addr);
  std::memcpy(id.bytes + 8, &address, sizeof(address));
  return id;
}

struct Rank {
  explicit Rank(uint32_t every = 256, uint64_t release = 3) : calls(every, release, kNanosPerSecond / 2) {}
  SocketRollCalls calls;
};

UniqueId Noted(Rank* rank) {
  UniqueId id = NcclsId();
  rank->calls.Note(&id);
  return id;
}

TEST(UniqueIdNote, IsReadAsItWasWritten) {
  UniqueId id = NcclsId("127.0.0.3");
  auto address = MeetingAddress(id);
  ASSERT_TRUE(address.has_value());
  EXPECT_FALSE(ReadNote(id).has_value());
  reinterpret_cast<sockaddr_in*>(&address->address)->sin_port = htons(99);
  address->nonce = 5;
  address->key = 6;
  ASSERT_TRUE(WriteNote(*address, &id));
  const auto read = ReadNote(id);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(std::memcmp(&read->address, &address->address, address->bytes), 0);
  EXPECT_EQ(read->nonce, 5U);
  EXPECT_EQ(read->key, 6U);
  // NCCL's own part is untouched, and what is there is not written over.
  EXPECT_EQ(std::memcmp(id.bytes, NcclsId("127.0.0.3").bytes, 64), 0);
  EXPECT_FALSE(WriteNote(*address, &id));
}

TEST(UniqueIdNote, AnIdOfAnotherKindGetsNone) {
  Rank rank;
  UniqueId id{};
  rank.calls.Note(&id);
  EXPECT_FALSE(ReadNote(id).has_value());
  EXPECT_EQ(rank.calls.CheckIn(id, 4, 0), nullptr);
}

TEST(RollCall, AllRanksLearnThatAllAreThere) {
  Rank first;
  Rank second;
  const UniqueId id = Noted(&first);
  std::vector<std::shared_ptr<RollCall>> rolls;
  for (int rank = 0; rank < 8; ++rank) rolls.push_back((rank % 2 == 0 ? first : second).calls.CheckIn(id, 8, rank));
  for (const auto& roll : rolls) {
    ASSERT_NE(roll, nullptr);
    EXPECT_EQ(roll->Await().kind, Kind::kAll);
  }
}

TEST(RollCall, ARankThatHasNotCheckedInIsNamedAfterAWhile) {
  Rank rank;
  const UniqueId id = Noted(&rank);
  const auto zero = rank.calls.CheckIn(id, 3, 0);
  const auto two = rank.calls.CheckIn(id, 3, 2);
  const SteadyClock clock;
  const Nanos begin = clock.Now();
  EXPECT_EQ(zero->Await(), (Verdict{Kind::kMissing, 1, 0}));
  EXPECT_GE(clock.Now() - begin, kRollGrace);
  EXPECT_EQ(two->Await(), (Verdict{Kind::kMissing, 1, 0}));
  // It comes too late, and learns the same.
  EXPECT_EQ(rank.calls.CheckIn(id, 3, 1)->Await(), (Verdict{Kind::kMissing, 1, 0}));
}

TEST(RollCall, OtherSettingsAreNamed) {
  Rank usual;
  Rank other(64);
  Rank newer(256, 4);
  UniqueId id = Noted(&usual);
  const auto roll = usual.calls.CheckIn(id, 2, 0);
  other.calls.CheckIn(id, 2, 1);
  EXPECT_EQ(roll->Await(), (Verdict{Kind::kDiffers, 1, 0}));
  id = Noted(&usual);
  newer.calls.CheckIn(id, 2, 1);
  EXPECT_EQ(usual.calls.CheckIn(id, 2, 0)->Await(), (Verdict{Kind::kDiffers, 0, 0}));
}

TEST(RollCall, CommunicatorsThatAreSplitOffHaveRollsOfTheirOwn) {
  Rank rank;
  const UniqueId id = Noted(&rank);
  std::vector<std::shared_ptr<RollCall>> parents;
  for (int i = 0; i < 4; ++i) parents.push_back(rank.calls.CheckIn(id, 4, i));
  // Two by two; then all again, of whom one is missing.
  std::vector<std::shared_ptr<RollCall>> pairs;
  for (int i = 0; i < 4; ++i) pairs.push_back(rank.calls.CheckInSplit(*parents[i], 0, i / 2, 2, i % 2));
  for (const auto& pair : pairs) EXPECT_EQ(pair->Await().kind, Kind::kAll);
  const auto again = rank.calls.CheckInSplit(*parents[3], 1, 0, 4, 3);
  EXPECT_EQ(again->Await(), (Verdict{Kind::kMissing, 0, 3}));
}

TEST(RollCall, WithoutTheProcessThatDecidesThereIsNoVerdictAndNoHang) {
  Rank rank;
  auto address = *ReadNote(Noted(&rank));
  // Nobody listens there.
  reinterpret_cast<sockaddr_in*>(&address.address)->sin_port = htons(1);
  SocketRollCall gone(address, {0, 2, 256, 3}, kNanosPerSecond / 2);
  EXPECT_FALSE(gone.CheckIn());
  EXPECT_EQ(gone.Await().kind, Kind::kNone);
  // One that is not the process that made the ID.
  address = *ReadNote(Noted(&rank));
  ++address.nonce;
  SocketRollCall other(address, {0, 2, 256, 3}, kNanosPerSecond / 2);
  EXPECT_TRUE(other.CheckIn());
  EXPECT_EQ(other.Await().kind, Kind::kNone);
}

TEST(RollCall, ADecisionOutlivesTheProcessThatDecides) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Rank maker;
    const UniqueId id = Noted(&maker);
    if (write(ends[1], &id, sizeof(id)) != sizeof(id)) _exit(1);
    for (;;) pause();
  }
  // So that the read ends if the child does.
  close(ends[1]);
  UniqueId id;
  const ssize_t got = read(ends[0], &id, sizeof(id));
  close(ends[0]);
  ASSERT_EQ(got, static_cast<ssize_t>(sizeof(id)));
  Rank rank;
  const auto first = rank.calls.CheckIn(id, 2, 0);
  const auto second = rank.calls.CheckIn(id, 2, 1);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  first->Ask();
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  EXPECT_EQ(first->Await().kind, Kind::kAll);
  EXPECT_EQ(second->Await().kind, Kind::kAll) << "it checked in last";
}

TEST(RollCall, AnAbortEndsTheWait) {
  Rank rank;
  const auto roll = rank.calls.CheckIn(Noted(&rank), 2, 0);
  std::thread other([&] { roll->End(); });
  const SteadyClock clock;
  const Nanos begin = clock.Now();
  EXPECT_EQ(roll->Await().kind, Kind::kNone);
  EXPECT_LT(clock.Now() - begin, kRollGrace);
  other.join();
}

TEST(RollCall, AMessageThatIsNoRequestDoesNoHarm) {
  Rank rank;
  const UniqueId id = Noted(&rank);
  const auto address = *ReadNote(id);
  for (int i = 0; i < 300; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address.address), address.bytes), 0);
    char noise[64] = "GET / HTTP/1.0";
    noise[i % 64] = static_cast<char>(i);
    EXPECT_GT(send(fd, noise, static_cast<size_t>(i % 65), MSG_NOSIGNAL), -1);
    close(fd);
  }
  EXPECT_EQ(rank.calls.CheckIn(id, 1, 0)->Await().kind, Kind::kAll);
}

// Else the AllReduces of a process that makes many communicators would fail in the end.
TEST(RollCall, OneCommunicatorTooManyHasAVerdict) {
  RollAddress address = *MeetingAddress(NcclsId());
  address.nonce = 5;
  ASSERT_NE(RollServer::Start(&address.address, address.bytes, address.nonce, 1), nullptr);
  const auto of = [&](uint64_t key) {
    address.key = key;
    return SocketRollCall(address, {0, 1, 256, 3}, kNanosPerSecond / 2).Await().kind;
  };
  EXPECT_EQ(of(1), Kind::kAll);
  EXPECT_EQ(of(2), Kind::kNoRoom);
  EXPECT_EQ(of(1), Kind::kAll);
}

TEST(RollCall, SilentConnectionsKeepNoRankWaiting) {
  Rank rank;
  const UniqueId id = Noted(&rank);
  const auto address = *ReadNote(id);
  std::vector<int> silent;
  for (int i = 0; i < 300; ++i) {
    silent.push_back(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(silent.back(), reinterpret_cast<const sockaddr*>(&address.address), address.bytes), 0);
  }
  EXPECT_EQ(rank.calls.CheckIn(id, 1, 0)->Await().kind, Kind::kAll);
  for (const int fd : silent) close(fd);
}

}  // namespace
}  // namespace r2cc::nccl
