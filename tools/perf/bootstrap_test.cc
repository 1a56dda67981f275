#include "tools/perf/bootstrap.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

namespace r2cc::perf {
namespace {

// Runs a body on every rank of a job, each on its own thread, and returns what each ended with.
std::vector<Status> RunJob(
    int ranks, const std::function<Status(int, Bootstrap&)>& body, const std::function<std::string(int)>& job = [](int) { return "job"; }) {
  int fd = -1, port = 0;
  EXPECT_TRUE(ListenTcp("127.0.0.1:0", &fd, &port).ok());
  std::vector<Status> results(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Bootstrap bootstrap;
      Status status = rank == 0 ? bootstrap.Accept(fd, ranks, job(rank))
                                : bootstrap.Connect("127.0.0.1:" + std::to_string(port), rank, ranks, job(rank), 30);
      results[rank] = status.ok() ? body(rank, bootstrap) : status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(BootstrapTest, EverybodyGetsEverybodysBytesByRank) {
  const auto results = RunJob(5, [](int rank, Bootstrap& bootstrap) -> Status {
    for (int round = 0; round < 100; ++round) {
      std::vector<std::string> all;
      R2CC_PERF_RETURN_IF_ERROR(bootstrap.AllGather(std::string(1000 * round, static_cast<char>('a' + rank)), &all));
      for (int other = 0; other < 5; ++other)
        if (all[other] != std::string(1000 * round, static_cast<char>('a' + other))) return Status::Error("wrong bytes");
    }
    return {};
  });
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << result.message();
}

TEST(BootstrapTest, AFailureReachesAllWithItsReason) {
  const auto results = RunJob(3, [](int rank, Bootstrap& bootstrap) -> Status {
    if (rank == 2) {
      bootstrap.Fail("the cat sat on the switch");
      return Status::Error("mine");
    }
    std::vector<std::string> all;
    return bootstrap.AllGather("x", &all);
  });
  EXPECT_EQ(results[0].message(), "rank 2 failed: the cat sat on the switch");
  EXPECT_EQ(results[1].message(), "rank 2 failed: the cat sat on the switch");
}

TEST(BootstrapTest, AVanishedRankEndsTheOthers) {
  const auto results = RunJob(3, [](int rank, Bootstrap& bootstrap) -> Status {
    if (rank == 1) return {};
    std::vector<std::string> all;
    return bootstrap.AllGather("x", &all);
  });
  EXPECT_EQ(results[0].message(), "rank 1 is gone (bootstrap connection lost)");
  EXPECT_EQ(results[2].message(), "rank 1 is gone (bootstrap connection lost)");
}

TEST(BootstrapTest, WaitForEndsWithTheOtherDescriptorOrAFailure) {
  const auto results = RunJob(2, [](int rank, Bootstrap& bootstrap) -> Status {
    int pipes[2];
    if (pipe(pipes) != 0) return Status::Error("pipe");
    bool ready = true;
    R2CC_PERF_RETURN_IF_ERROR(bootstrap.WaitFor(pipes[0], 1, &ready));
    if (ready) return Status::Error("ready too early");
    if (write(pipes[1], "x", 1) != 1) return Status::Error("write");
    while (!ready) R2CC_PERF_RETURN_IF_ERROR(bootstrap.WaitFor(pipes[0], 1000, &ready));
    close(pipes[0]);
    close(pipes[1]);
    std::vector<std::string> all;
    R2CC_PERF_RETURN_IF_ERROR(bootstrap.AllGather("x", &all));
    if (rank == 1) return {};
    for (;;) R2CC_PERF_RETURN_IF_ERROR(bootstrap.WaitFor(-1, 1000, &ready));
  });
  EXPECT_EQ(results[0].message(), "rank 1 is gone (bootstrap connection lost)");
}

TEST(BootstrapTest, OtherFlagsAreRefusedOnBothSides) {
  const auto results = RunJob(
      2,
      [](int, Bootstrap& bootstrap) -> Status {
        std::vector<std::string> all;
        return bootstrap.AllGather("x", &all);
      },
      [](int rank) { return rank == 0 ? "-n 5" : "-n 6"; });
  EXPECT_EQ(results[0].message(), "rank 1 was started with other flags: '-n 6', rank 0 with '-n 5'");
  EXPECT_EQ(results[1].message(), results[0].message());
}

// Garbage, a huge length, silence: turned away, and the job goes on.
TEST(BootstrapTest, UnrelatedConnectionsDoNotStopTheJob) {
  int fd = -1, port = 0;
  ASSERT_TRUE(ListenTcp("127.0.0.1:0", &fd, &port).ok());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  for (const std::string& text :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string("R2PF\x01\0\0\0\xff\xff\xff\xff", 12), std::string()}) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  Status other;
  std::thread thread([&] {
    Bootstrap bootstrap;
    other = bootstrap.Connect("127.0.0.1:" + std::to_string(port), 1, 2, "job", 30);
    std::vector<std::string> all;
    if (other.ok()) other = bootstrap.AllGather("x", &all);
  });
  Bootstrap bootstrap;
  std::vector<std::string> all;
  EXPECT_TRUE(bootstrap.Accept(fd, 2, "job").ok());
  EXPECT_TRUE(bootstrap.AllGather("x", &all).ok());
  thread.join();
  EXPECT_TRUE(other.ok()) << other.message();
}

TEST(BootstrapTest, BadAddressesAreNamed) {
  int fd = -1, port = 0;
  EXPECT_EQ(ListenTcp("7500", &fd, &port).message(), "'7500' is not HOST:PORT");
  EXPECT_NE(ListenTcp("192.0.2.1:7500", &fd, &port).message().find("cannot listen on 192.0.2.1:7500"), std::string::npos);
  Bootstrap bootstrap;
  EXPECT_NE(bootstrap.Connect("127.0.0.1:1", 1, 2, "job", 0).message().find("is rank 0 started there?"), std::string::npos);
}

}  // namespace
}  // namespace r2cc::perf
