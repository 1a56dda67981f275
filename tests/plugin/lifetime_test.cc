// How the plugin's life may go in somebody else's process: contexts come and go, the library is closed and opened again, the process forks,
// and it ends at any moment.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;

constexpr int kNewest = kVersionNewest;
constexpr size_t kLarge = 32 << 20;

void ExpectFine(const std::function<int()>& body) {
  OwnProcess process({}, body);
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

void* InitOf(Net* net) {
  void* context = nullptr;
  R2CC_MUST(net->Init(&context) == Result::kSuccess);
  return context;
}

// ---- contexts ----

TEST(Lifetime, InitAndFinalizeOfEachCommunicator) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kNewest);
    void* first = InitOf(net.get());
    void* second = InitOf(net.get());
    Pair one = Pair::Open(net.get(), first, 0), two = Pair::Open(net.get(), second, 1);
    one.Transfer(1, 500'000, 500'000);
    one.Close();
    R2CC_MUST(net->Finalize(first) == Result::kSuccess);
    // The other communicator has noticed nothing.
    for (uint64_t number = 0; number < 10; ++number) two.Transfer(number, 200'000, 200'000);
    two.Close();
    R2CC_MUST(net->Finalize(second) == Result::kSuccess);
    return 0;
  });
}

TEST(Lifetime, InitAgainAfterTheLastFinalize) {
  ExpectFine([] {
    void* library = OpenLibrary();
    for (const int version : {kNewest, 11, 8, 7, kNewest}) {
      const std::unique_ptr<Net> net = NetOf(library, version);
      void* context = InitOf(net.get());
      Pair pair = Pair::Open(net.get(), context, 2);
      pair.Transfer(1, 100'000, 100'000);
      pair.Close();
      R2CC_MUST(net->Finalize(context) == Result::kSuccess);
    }
    return 0;
  });
}

// NCCL 2.28.3 ends the context of a communicator while others that share its resources live, and makes their connections with it.
TEST(Lifetime, AContextThatHasEndedIsUsed) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kNewest);
    void* parent = InitOf(net.get());
    void* child = InitOf(net.get());
    R2CC_MUST(net->Finalize(parent) == Result::kSuccess);
    R2CC_MUST(net->Finalize(parent) == Result::kSuccess);
    void* other = InitOf(net.get());
    R2CC_MUST(other != parent);
    Pair pair = Pair::Open(net.get(), parent, 0);
    pair.Transfer(1, 100'000, 100'000);
    pair.Close();
    R2CC_MUST(net->Finalize(child) == Result::kSuccess);
    R2CC_MUST(net->Finalize(other) == Result::kSuccess);
    return 0;
  });
}

// NCCL 2.28 and 2.29 end a context after an init that failed: none, or that of another plugin.
TEST(Lifetime, AContextOfAnotherPluginIsEnded) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kNewest);
    void* context = InitOf(net.get());
    int others = 0;
    for (void* none : {static_cast<void*>(nullptr), static_cast<void*>(&others)}) R2CC_MUST(net->Finalize(none) == Result::kSuccess);
    R2CC_MUST(net->Finalize(context) == Result::kSuccess);
    return 0;
  });
}

// NCCL 2.22 and 2.23 close the library and open it again without calling init.
TEST(Lifetime, ReloadWithoutInit) {
  ExpectFine([] {
    void* library = OpenLibrary();
    const void* table = TableOf(library, 8);
    {
      const std::unique_ptr<Net> net = NetOf(library, 8);
      void* context = InitOf(net.get());
      Pair pair = Pair::Open(net.get(), context, 0);
      pair.Transfer(1, 100'000, 100'000);
      pair.Close();
    }
    R2CC_MUST(dlclose(library) == 0);
    // Its threads live on, so it must not be unmapped.
    void* kept = dlopen("netplugin/libnccl-net-r2cc.so", RTLD_NOW | RTLD_NOLOAD);
    R2CC_MUST(kept != nullptr && dlclose(kept) == 0);
    library = OpenLibrary();
    R2CC_MUST(TableOf(library, 8) == table);
    const std::unique_ptr<Net> net = NetOf(library, 8);
    Pair pair = Pair::Open(net.get(), nullptr, 1);
    pair.Transfer(2, 100'000, 100'000);
    pair.Close();
    return 0;
  });
}

TEST(Lifetime, ATableWithoutAnyInit) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), 8);
    int devices = 0;
    R2CC_MUST(net->Devices(&devices) == Result::kSuccess && devices == 4);
    Pair pair = Pair::Open(net.get(), nullptr, 0);
    pair.Transfer(1, 100'000, 100'000);
    pair.Close();
    return 0;
  });
}

// connect() is asked again and again; meanwhile the peer may have accepted and closed.
TEST(Lifetime, TheAcceptorClosesBeforeConnectHasItsAnswer) {
  OwnProcess process({}, [] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kNewest);
    void* context = InitOf(net.get());
    Pair other = Pair::Open(net.get(), context, 0);
    alignas(8) uint8_t handle[abi::kNetHandleBytesMax];
    void *listen_comm = nullptr, *send_comm = nullptr, *recv_comm = nullptr, *request = nullptr;
    // On a busy machine the answer may be here at once: then another connection, until connect() has to be called again.
    R2CC_MUST(Await(kLimitS, [&] {
      recv_comm = nullptr;
      R2CC_MUST(net->Listen(context, 0, handle, &listen_comm) == Result::kSuccess);
      R2CC_MUST(net->Connect(context, 0, handle, &send_comm) == Result::kSuccess);
      R2CC_MUST(Await(kLimitS, [&] {
        R2CC_MUST(net->Accept(listen_comm, &recv_comm) == Result::kSuccess);
        return recv_comm != nullptr;
      }));
      if (send_comm == nullptr) return true;
      R2CC_MUST(net->CloseSend(std::exchange(send_comm, nullptr)) == Result::kSuccess);
      R2CC_MUST(net->CloseReceive(recv_comm) == Result::kSuccess);
      R2CC_MUST(net->CloseListen(listen_comm) == Result::kSuccess);
      return false;
    }));
    R2CC_MUST(net->CloseReceive(recv_comm) == Result::kSuccess);
    // Acknowledgements come on the channel on which the word of the close has come.
    for (uint64_t number = 0; number < 20; ++number) other.Transfer(number, 300'000, 300'000);
    R2CC_MUST(net->Connect(context, 0, handle, &send_comm) == Result::kSuccess && send_comm != nullptr);
    R2CC_MUST(net->Send(send_comm, handle, sizeof(handle), nullptr, &request) == Result::kRemoteError && request == nullptr);
    R2CC_MUST(net->CloseSend(send_comm) == Result::kSuccess);
    // And one that nobody listens for any more.
    R2CC_MUST(net->CloseListen(listen_comm) == Result::kSuccess);
    Result result = Result::kSuccess;
    R2CC_MUST(Await(kLimitS, [&] {
      result = net->Connect(context, 0, handle, &send_comm);
      return result != Result::kSuccess;
    }));
    R2CC_MUST(result == Result::kRemoteError && send_comm == nullptr);
    other.Close();
    R2CC_MUST(net->Finalize(context) == Result::kSuccess);
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
  EXPECT_NE(process.text().find(" closed the flow\n"), std::string::npos) << process.text();
  EXPECT_NE(process.text().find(" does not listen for this flow any more\n"), std::string::npos) << process.text();
}

// Several "GPUs" of one process, each a thread with a context of its own, joined in a ring by several communicators.
TEST(Lifetime, SeveralGpusAndManyCommunicators) {
  ExpectFine([] {
    constexpr int kGpus = 3, kChannels = 5, kMessages = 60;
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kNewest);
    std::vector<void*> contexts;
    for (int gpu = 0; gpu < kGpus; ++gpu) contexts.push_back(InitOf(net.get()));
    // ring[gpu][channel] sends from `gpu` to the next one.
    std::vector<std::vector<Pair>> ring(kGpus);
    for (int gpu = 0; gpu < kGpus; ++gpu)
      for (int channel = 0; channel < kChannels; ++channel) ring[gpu].push_back(Pair::Open(net.get(), contexts[gpu], channel % 4));
    const auto number_of = [](int gpu, int channel, int message) {
      return static_cast<uint64_t>(gpu * 100'000 + channel * 1000 + message);
    };
    const auto size_of = [](uint64_t number) { return static_cast<size_t>(number * 7919 % 200'000); };
    std::vector<std::thread> threads;
    for (int gpu = 0; gpu < kGpus; ++gpu)
      threads.emplace_back([&, gpu] {
        const int before = (gpu + kGpus - 1) % kGpus;
        std::vector<std::vector<uint8_t>> from(kChannels, std::vector<uint8_t>(200'000)), to = from;
        for (int message = 0; message < kMessages; ++message) {
          std::vector<void*> sends(kChannels), receives(kChannels);
          for (int channel = 0; channel < kChannels; ++channel) {
            receives[channel] = ring[before][channel].Receive(to[channel].data(), to[channel].size());
            const uint64_t number = number_of(gpu, channel, message);
            FillPattern(number, {from[channel].data(), size_of(number)});
            sends[channel] = ring[gpu][channel].Send(from[channel].data(), size_of(number));
          }
          for (int channel = 0; channel < kChannels; ++channel) {
            const uint64_t number = number_of(before, channel, message);
            R2CC_MUST(Finish(net.get(), receives[channel]) == static_cast<int>(size_of(number)));
            R2CC_MUST(HoldsPattern(number, {to[channel].data(), size_of(number)}));
            R2CC_MUST(Finish(net.get(), sends[channel]) >= 0);
          }
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (std::vector<Pair>& pairs : ring)
      for (Pair& pair : pairs) pair.Close();
    for (void* context : contexts) R2CC_MUST(net->Finalize(context) == Result::kSuccess);
    return 0;
  });
}

// ---- fork ----

int WaitFor(pid_t pid) {
  int status = 0;
  R2CC_MUST(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Lifetime, AForkedChildGetsAnErrorAndDoesNotHang) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kNewest);
    void* context = InitOf(net.get());
    Pair pair = Pair::Open(net.get(), context, 0);
    pair.Transfer(1, 100'000, 100'000);
    std::vector<uint8_t> bytes(1000);
    void* outstanding = pair.Receive(bytes.data(), bytes.size());
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(30);  // a call that hangs ends the child, which its status shows
      alignas(8) uint8_t handle[abi::kNetHandleBytesMax] = {};
      void* made = nullptr;
      int done = 0, count = 0;
      R2CC_MUST(net->Init(&made) != Result::kSuccess);
      R2CC_MUST(net->Listen(context, 0, handle, &made) != Result::kSuccess);
      R2CC_MUST(net->Send(pair.send_comm, bytes.data(), bytes.size(), nullptr, &made) != Result::kSuccess);
      R2CC_MUST(net->Receive(pair.recv_comm, bytes.data(), bytes.size(), nullptr, &made) != Result::kSuccess);
      R2CC_MUST(net->Test(outstanding, &done, &count) != Result::kSuccess);
      // These give something back and have no good answer; they must return.
      (void)net->CloseSend(pair.send_comm);
      (void)net->CloseReceive(pair.recv_comm);
      (void)net->Finalize(context);
      std::exit(0);  // with every handler that the process has
    }
    R2CC_MUST(WaitFor(pid) == 0);
    // The parent's flow goes on, the request from before the fork included.
    std::vector<uint8_t> from(1000);
    FillPattern(5, from);
    void* send = pair.Send(from.data(), from.size());
    R2CC_MUST(Finish(net.get(), outstanding) == 1000 && HoldsPattern(5, bytes) && Finish(net.get(), send) >= 0);
    for (uint64_t number = 0; number < 10; ++number) pair.Transfer(number, 300'000, 300'000);
    pair.Close();
    R2CC_MUST(net->Finalize(context) == Result::kSuccess);
    return 0;
  });
}

TEST(Lifetime, ForksInMidTransfer) {
  ExpectFine([] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kNewest);
    void* context = InitOf(net.get());
    Pair pair = Pair::Open(net.get(), context, 0);
    for (uint64_t round = 0; round < 20; ++round) {
      Pages from(8 << 20), to(8 << 20);
      FillPattern(round, {from.data(), from.size()});
      void* receive = pair.Receive(to.data(), to.size());
      void* send = pair.Send(from.data(), from.size());
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(30);
        std::exit(0);
      }
      R2CC_MUST(Finish(net.get(), receive) == static_cast<int>(to.size()) && Finish(net.get(), send) >= 0);
      R2CC_MUST(HoldsPattern(round, {to.data(), to.size()}));
      R2CC_MUST(WaitFor(pid) == 0);
    }
    pair.Close();
    return 0;
  });
}

// ---- the end ----

// NCCL may never close anything. Who waits for nobody's word any more does not wait for the deadline.
TEST(Lifetime, TheProcessEndsWithOpenCommunicators) {
  constexpr double kEndWithinS = 15;
  for (int outstanding = 0; outstanding < 2; ++outstanding) {
    const double before_s = NowS();
    ExpectFine([outstanding] {
      const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kNewest);
      void* context = InitOf(net.get());
      Pair pair = Pair::Open(net.get(), context, 0);
      pair.Transfer(1, 100'000, 100'000);
      static Pages from(kLarge), to(kLarge);
      if (outstanding != 0) {
        pair.Receive(to.data(), to.size());
        pair.Send(from.data(), from.size());
      }
      return 0;
    });
    EXPECT_LT(NowS() - before_s, kEndWithinS) << (outstanding != 0 ? "requests were outstanding" : "nothing was outstanding");
  }
}

// NCCL's progress thread does not know that main() has returned.
TEST(Lifetime, TheProcessEndsWhileAThreadStillCalls) {
  for (int round = 0; round < 8; ++round)
    ExpectFine([round] {
      // Nothing of what the thread uses is destroyed.
      static Net* const net = NetOf(OpenLibrary(), kNewest).release();
      static Pair pair = Pair::Open(net, InitOf(net), 0);
      static std::vector<uint8_t>& from = *new std::vector<uint8_t>(20'000);
      static std::vector<uint8_t>& to = *new std::vector<uint8_t>(20'000);
      static std::atomic<int> transfers{0};
      std::thread([] {
        for (;;) {
          void* receive = nullptr;
          void* send = nullptr;
          if (net->Receive(pair.recv_comm, to.data(), to.size(), nullptr, &receive) != Result::kSuccess) break;
          if (net->Send(pair.send_comm, from.data(), from.size(), nullptr, &send) != Result::kSuccess) break;
          for (void* request : {receive, send}) {
            int done = request == nullptr ? 1 : 0;
            while (done == 0)
              if (net->Test(request, &done, nullptr) != Result::kSuccess) return;
          }
          ++transfers;
        }
      }).detach();
      R2CC_MUST(Await(kLimitS, [round] { return transfers > 10 * (round + 1); }));
      return 0;
    });
}

Net* late_net = nullptr;
Pair* late_pair = nullptr;
void* late_request = nullptr;
void* late_context = nullptr;

void CallAfterTheEnd() {
  static std::vector<uint8_t>& bytes = *new std::vector<uint8_t>(1000);
  alarm(30);
  void* made = nullptr;
  int done = 0;
  R2CC_MUST(late_net->Send(late_pair->send_comm, bytes.data(), bytes.size(), nullptr, &made) != Result::kSuccess);
  R2CC_MUST(late_net->Receive(late_pair->recv_comm, bytes.data(), bytes.size(), nullptr, &made) != Result::kSuccess);
  R2CC_MUST(late_net->Test(late_request, &done, nullptr) != Result::kSuccess || done != 0);
  R2CC_MUST(late_net->Init(&made) != Result::kSuccess);
  (void)late_net->CloseSend(late_pair->send_comm);
  (void)late_net->CloseReceive(late_pair->recv_comm);
  (void)late_net->Finalize(late_context);
  std::fprintf(stderr, "called after the end\n");
  std::fflush(nullptr);
}

// Handlers run in reverse order: one that was there before the plugin calls it when it has ended.
TEST(Lifetime, CallsAfterTheEndAreRefused) {
  OwnProcess process({}, [] {
    R2CC_MUST(std::atexit(CallAfterTheEnd) == 0);
    late_net = NetOf(OpenLibrary(), kNewest).release();
    late_context = InitOf(late_net);
    late_pair = new Pair(Pair::Open(late_net, late_context, 0));
    late_pair->Transfer(1, 100'000, 100'000);
    static std::vector<uint8_t>& bytes = *new std::vector<uint8_t>(1000);
    late_request = late_pair->Receive(bytes.data(), bytes.size());
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
  EXPECT_NE(process.text().find("called after the end"), std::string::npos) << process.text();
}

}  // namespace
}  // namespace r2cc::plugin_test
