// What NCCL's rules leave to a plugin: see plugin/calls.h.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;

// Beside the deadline of half a minute, also on a busy machine.
constexpr double kAtOnceS = 5;

// In a process of its own, with a flow; returns what that wrote.
std::string TextOf(const std::function<void(Net*, Pair*)>& body) {
  OwnProcess process({}, [&body] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    Pair pair = Pair::Open(net.get(), context, 0);
    pair.Transfer(1, 100'000, 100'000);
    body(net.get(), &pair);
    // Nobody else notices.
    Pair::Open(net.get(), context, 1).Transfer(2, 100'000, 100'000);
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
  return process.text();
}

TEST(Misuse, AReceiverThatClosesWithReceivesOutstandingIsTheSendersErrorAtOnce) {
  for (const bool large : {false, true})
    TextOf([large](Net* net, Pair* pair) {
      std::vector<uint8_t> from(large ? 1'000'000 : 1000), to(from.size());
      pair->Receive(to.data(), to.size());
      R2CC_MUST(net->CloseReceive(pair->recv_comm) == Result::kSuccess);
      R2CC_MUST(Await(kAtOnceS, [&] {
        void* request = nullptr;
        return net->Send(pair->send_comm, from.data(), from.size(), nullptr, &request) != Result::kSuccess;
      }));
      R2CC_MUST(net->CloseSend(pair->send_comm) == Result::kSuccess);
    });
}

// A large one is refused by its sender, who knows the buffer; a small one by whoever sees it first. When that end closes, as NCCL's abort
// does, the other one has its error. Nothing is written, and no shorter message is made of it.
TEST(Misuse, ASendThatIsLargerThanItsReceiveIsAnErrorAtBothEnds) {
  for (const size_t bytes : {size_t{1000}, size_t{1'000'000}}) {
    const std::string text = TextOf([bytes](Net* net, Pair* pair) {
      std::vector<uint8_t> from(bytes, 1), to(bytes, 2);
      void* const receive = pair->Receive(to.data(), bytes - 1);
      void* send = nullptr;
      bool send_failed = false, receive_failed = false;
      int done = 0;
      R2CC_MUST(Await(kLimitS, [&] {
        if (send == nullptr)
          send_failed = net->Send(pair->send_comm, from.data(), bytes, nullptr, &send) != Result::kSuccess;
        else
          send_failed = net->Test(send, &done, nullptr) != Result::kSuccess;
        // What is done is not asked about again.
        if (done != 0) send = nullptr, done = 0;
        int received = 0;
        receive_failed = net->Test(receive, &received, nullptr) != Result::kSuccess;
        R2CC_MUST(received == 0);
        return send_failed || receive_failed;
      }));
      R2CC_MUST(send_failed || bytes == 1000);
      if (receive_failed) {
        R2CC_MUST(net->CloseReceive(pair->recv_comm) == Result::kSuccess);
        R2CC_MUST(Await(kAtOnceS, [&] {
          void* request = nullptr;
          return net->Send(pair->send_comm, from.data(), 1, nullptr, &request) != Result::kSuccess;
        }));
        R2CC_MUST(net->CloseSend(pair->send_comm) == Result::kSuccess);
      } else {
        R2CC_MUST(net->CloseSend(pair->send_comm) == Result::kSuccess);
        R2CC_MUST(Finish(net, receive, kAtOnceS) == -1);
        R2CC_MUST(net->CloseReceive(pair->recv_comm) == Result::kSuccess);
      }
      R2CC_MUST(to == std::vector<uint8_t>(bytes, 2));
    });
    EXPECT_NE(text.find("larger than the buffer"), std::string::npos) << text;
  }
}

// The caller's error, at once; the peer would be given an offset that it takes for an attack.
TEST(Misuse, ABufferOutsideItsRegistrationIsRefusedAndNothingElseIsHurt) {
  const std::string text = TextOf([](Net* net, Pair* pair) {
    std::vector<uint8_t> bytes(2000);
    for (const bool receives : {false, true}) {
      void *handle = nullptr, *request = nullptr;
      void* const comm = receives ? pair->recv_comm : pair->send_comm;
      R2CC_MUST(net->Register(comm, bytes.data(), 1000, abi::kPtrHost, &handle) == Result::kSuccess);
      const auto post = [&](uint8_t* at, size_t count) {
        return receives ? net->Receive(comm, at, count, handle, &request) : net->Send(comm, at, count, handle, &request);
      };
      R2CC_MUST(post(bytes.data(), 1001) == Result::kInvalidArgument && request == nullptr);
      R2CC_MUST(post(bytes.data() + 1000, 1) == Result::kInvalidArgument && request == nullptr);
      R2CC_MUST(post(nullptr, 1) == Result::kInvalidArgument && request == nullptr);
      R2CC_MUST(net->Deregister(comm, handle) == Result::kSuccess);
    }
    pair->Transfer(3, 100'000, 100'000);
  });
  EXPECT_NE(text.find("does not lie in the registration"), std::string::npos) << text;
}

}  // namespace
}  // namespace r2cc::plugin_test
