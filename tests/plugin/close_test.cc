// Communicators that are closed with work outstanding: when close returns, nothing touches NCCL's buffers any more, nobody waits for a
// peer, and the other end gets an error.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/plugin/kernel_touch.h"
#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;

constexpr size_t kLarge = 16 << 20;

void ExpectFine(const std::function<int()>& body) {
  OwnProcess process({}, body);
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

// Lets the plugin's threads run, for a time that a busy machine does not stretch.
void YieldFor(double duration_s) {
  for (const double until_s = NowS() + duration_s; NowS() < until_s;) std::this_thread::yield();
}

void* InitOf(Net* net) {
  void* context = nullptr;
  R2CC_MUST(net->Init(&context) == Result::kSuccess);
  return context;
}

// Who moves bulk: NCCL's threads and the I/O thread alone, or workers from the first byte on.
const OwnProcess::Environment kWorkers[] = {{{"R2CC_BULK_THREADS", "0"}}, {{"R2CC_BULK_THREADS", "2"}}};

// The buffers are given back as soon as close returns: one late read or write ends the process, is refused to the kernel, or shows in what
// is there by then. Another flow of the same links goes on.
TEST(Close, CloseWithRequestsOutstanding) {
  for (const auto& workers : kWorkers) {
    OwnProcess process(workers, [] {
      const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
      void* context = InitOf(net.get());
      Pair steady = Pair::Open(net.get(), context, 1);
      std::vector<Pages> given_back;
      for (int round = 0; round < 24; ++round) {
        Pair victim = Pair::Open(net.get(), context, 0);
        Pages from(kLarge), to(kLarge);
        victim.Receive(to.data(), to.size());
        victim.Send(from.data(), from.size());
        // From "nothing has moved yet" to somewhere in the middle.
        YieldFor(round * 120e-6);
        const double before_s = NowS();
        const auto close_send = [&] {
          R2CC_MUST(net->CloseSend(victim.send_comm) == Result::kSuccess);
          from.Forbid();
        };
        if (round % 2 == 0) close_send();
        R2CC_MUST(net->CloseReceive(victim.recv_comm) == Result::kSuccess);
        round % 4 < 2 ? to.Forbid() : to.Reuse();
        if (round % 2 != 0) close_send();
        R2CC_MUST(NowS() - before_s < 20);
        given_back.push_back(std::move(from));
        given_back.push_back(std::move(to));
        steady.Transfer(static_cast<uint64_t>(round), 700'000, 700'000);
      }
      steady.Close();
      R2CC_MUST(net->Finalize(context) == Result::kSuccess);
      R2CC_MUST(KernelCalls() > 1000);
      R2CC_MUST(KernelFaults() == 0);
      for (size_t round = 0; round < given_back.size() / 2; ++round)
        if (round % 4 >= 2) R2CC_MUST(given_back[2 * round + 1].Untouched());
      return 0;
    });
    EXPECT_EQ(process.Wait(), 0) << process.text();
  }
}

// A worker stands before its call, with the lock in nobody's hands, when the flow is closed.
void CloseWhileAWorkerIsAtItsCall(bool receiver, bool reuse) {
  OwnProcess process(kWorkers[1], [=] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = InitOf(net.get());
    Pair victim = Pair::Open(net.get(), context, 0);
    Pages from(kLarge), to(kLarge);
    Pages& own = receiver ? to : from;
    HeldCall held({own.data(), own.size()}, "r2cc-bulk");
    victim.Receive(to.data(), to.size());
    victim.Send(from.data(), from.size());
    R2CC_MUST(held.WaitUntilHeld());
    const Result closed = receiver ? net->CloseReceive(victim.recv_comm) : net->CloseSend(victim.send_comm);
    R2CC_MUST(closed == Result::kSuccess);
    reuse ? own.Reuse() : own.Forbid();
    held.Release();
    R2CC_MUST((receiver ? net->CloseSend(victim.send_comm) : net->CloseReceive(victim.recv_comm)) == Result::kSuccess);
    R2CC_MUST(net->Finalize(context) == Result::kSuccess);
    R2CC_MUST(KernelFaults() == 0);
    R2CC_MUST(!reuse || own.Untouched());
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

TEST(Close, CloseOfAReceiverWaitsForTheKernelsWrite) {
  CloseWhileAWorkerIsAtItsCall(true, false);
  CloseWhileAWorkerIsAtItsCall(true, true);
}

TEST(Close, CloseOfASenderWaitsForTheKernelsRead) { CloseWhileAWorkerIsAtItsCall(false, false); }

// A close that ends a link with a chunk half-way makes the link come back a moment later: flows are opened and closed all through it. With
// many sockets to greet the moment is long.
TEST(Close, CloseWhileALinkComesBack) {
  OwnProcess process({{"R2CC_SOCKETS_PER_RAIL", "16"}}, [] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = InitOf(net.get());
    for (int round = 0; round < 10; ++round) {
      Pair victim = Pair::Open(net.get(), context, 0);
      Pages from(kLarge), to(kLarge);
      victim.Receive(to.data(), to.size());
      victim.Send(from.data(), from.size());
      YieldFor(600e-6);
      victim.Close();
      constexpr double kLongerThanABackOffS = 0.2;
      for (const double until = NowS() + kLongerThanABackOffS; NowS() < until;) {
        Pair other = Pair::Open(net.get(), context, 1);
        other.Send(from.data(), from.size());  // nobody receives it: nothing of it is half-way
        other.Close();
      }
    }
    Pair last = Pair::Open(net.get(), context, 0);
    last.Transfer(1, 1'000'000, 1'000'000);
    last.Close();
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

// The abort of one side is an error on the other, and no hang.
TEST(Close, CloseOfOneEndIsAnErrorAtTheOther) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = InitOf(net.get());
    std::vector<uint8_t> bytes(100'000);
    {
      Pair pair = Pair::Open(net.get(), context, 0);
      void* receive = pair.Receive(bytes.data(), bytes.size());
      R2CC_MUST(net->CloseSend(pair.send_comm) == Result::kSuccess);
      R2CC_MUST(Finish(net.get(), receive) == -1);
      R2CC_MUST(net->CloseReceive(pair.recv_comm) == Result::kSuccess);
    }
    {
      Pair pair = Pair::Open(net.get(), context, 0);
      void* send = pair.Send(bytes.data(), bytes.size());
      R2CC_MUST(net->CloseReceive(pair.recv_comm) == Result::kSuccess);
      R2CC_MUST(Finish(net.get(), send) == -1);
      R2CC_MUST(net->CloseSend(pair.send_comm) == Result::kSuccess);
    }
    return 0;
  });
}

TEST(Close, AConnectionThatIsNeverAcceptedIsClosed) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = InitOf(net.get());
    alignas(8) uint8_t handle[abi::kNetHandleBytesMax];
    void* listen_comm = nullptr;
    void* send_comm = nullptr;
    R2CC_MUST(net->Listen(context, 0, handle, &listen_comm) == Result::kSuccess);
    R2CC_MUST(Await(kLimitS, [&] {
      R2CC_MUST(net->Connect(context, 0, handle, &send_comm) == Result::kSuccess);
      return send_comm != nullptr;
    }));
    std::vector<uint8_t> bytes(100'000);
    void* request = nullptr;
    R2CC_MUST(net->Send(send_comm, bytes.data(), bytes.size(), nullptr, &request) == Result::kSuccess);
    R2CC_MUST(net->CloseListen(listen_comm) == Result::kSuccess);
    R2CC_MUST(request == nullptr || Finish(net.get(), request) == -1);
    R2CC_MUST(net->CloseSend(send_comm) == Result::kSuccess);
    return 0;
  });
}

}  // namespace
}  // namespace r2cc::plugin_test
