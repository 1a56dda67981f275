// No exception crosses the ABI: whichever allocation fails, a call of NCCL's is an error, and the process goes on. The tables are linked in
// here instead of loaded, so that their memory comes from this file.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>

#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace {

// Of the calling thread.
thread_local bool armed = false;
thread_local bool for_good = false;  // all after the one that fails do, too
thread_local int left = 0;           // allocations before the one that fails
thread_local bool failed = false;

}  // namespace

void* operator new(size_t bytes) {
  if (armed && left-- <= 0) {
    failed = true;
    armed = for_good;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace r2cc::plugin_test {
namespace {

using abi::Result;

constexpr size_t kSmall = 1000;
constexpr size_t kLarge = 1 << 20;

void* Library() {
  void* const self = dlopen(nullptr, RTLD_NOW);
  R2CC_MUST(self != nullptr);
  return self;
}

// Which allocation of a call fails.
struct Failure {
  int number = 0;
  bool for_good = false;

  // True if it was reached. Then the call was an error.
  bool Hits(const std::function<Result()>& call) const {
    left = number;
    ::for_good = for_good;
    failed = false;
    armed = true;
    const Result result = call();
    armed = false;
    R2CC_MUST((result == Result::kSuccess) == !failed);
    return failed;
  }
};

struct Setting {
  std::unique_ptr<Net> net;
  void* context = nullptr;
};

// One entry, called where it has work to do. True if the failure was reached.
struct Entry {
  const char* name;
  bool (*call)(Setting*, const Failure&);
};

bool Listen(Setting* s, const Failure& failure) {
  alignas(8) uint8_t handle[abi::kNetHandleBytesMax];
  void* listen_comm = nullptr;
  const bool hit = failure.Hits([&] { return s->net->Listen(s->context, 0, handle, &listen_comm); });
  if (!hit) R2CC_MUST(s->net->CloseListen(listen_comm) == Result::kSuccess);
  return hit;
}

bool ConnectAndAccept(Setting* s, const Failure& failure, bool fail_connect) {
  alignas(8) uint8_t handle[abi::kNetHandleBytesMax];
  Pair pair{s->net.get()};
  void* listen_comm = nullptr;
  R2CC_MUST(s->net->Listen(s->context, 0, handle, &listen_comm) == Result::kSuccess);
  const auto connect = [&] { return s->net->Connect(s->context, 0, handle, &pair.send_comm); };
  const auto accept = [&] { return s->net->Accept(listen_comm, &pair.recv_comm); };
  bool hit = false;
  R2CC_MUST(Await(kLimitS, [&] {
    if (pair.send_comm == nullptr && fail_connect) hit = failure.Hits(connect);
    if (pair.send_comm == nullptr && !fail_connect) R2CC_MUST(connect() == Result::kSuccess);
    if (!hit && pair.recv_comm == nullptr && !fail_connect) hit = failure.Hits(accept);
    if (!hit && pair.recv_comm == nullptr && fail_connect) R2CC_MUST(accept() == Result::kSuccess);
    return hit || (pair.send_comm != nullptr && pair.recv_comm != nullptr);
  }));
  if (pair.send_comm != nullptr) R2CC_MUST(s->net->CloseSend(pair.send_comm) == Result::kSuccess);
  if (pair.recv_comm != nullptr) R2CC_MUST(s->net->CloseReceive(pair.recv_comm) == Result::kSuccess);
  R2CC_MUST(s->net->CloseListen(listen_comm) == Result::kSuccess);
  return hit;
}

// A message of `bytes`, at one of whose calls memory fails.
enum class At { kRegister, kSend, kReceive, kTestSend, kTestReceive, kFlush, kCloseSend, kCloseReceive };
bool Message(Setting* s, const Failure& failure, At at, size_t bytes) {
  Pair pair = Pair::Open(s->net.get(), s->context, 1);
  Pages from(bytes), to(bytes);
  FillPattern(7, {from.data(), bytes});
  void *mhandle = nullptr, *from_mhandle = nullptr;
  R2CC_MUST(s->net->Register(pair.send_comm, from.data(), bytes, abi::kPtrHost, &from_mhandle) == Result::kSuccess);
  void *send = nullptr, *receive = nullptr, *flush = nullptr;
  int done = 0, sent = 0;
  bool hit = false;
  const auto call = [&](At here, const std::function<Result()>& entry) {
    if (hit) return;
    if (here == at)
      hit = failure.Hits(entry);
    else
      R2CC_MUST(entry() == Result::kSuccess);
  };
  call(At::kRegister, [&] { return s->net->Register(pair.recv_comm, to.data(), bytes, abi::kPtrHost, &mhandle); });
  call(At::kReceive, [&] { return s->net->Receive(pair.recv_comm, to.data(), bytes, mhandle, &receive); });
  call(At::kSend, [&] { return s->net->Send(pair.send_comm, from.data(), bytes, from_mhandle, &send); });
  // Who is not tested is helped along by the others.
  R2CC_MUST(Await(kLimitS, [&] {
    if (done == 0) call(At::kTestReceive, [&] { return s->net->Test(receive, &done, nullptr); });
    if (sent == 0) call(At::kTestSend, [&] { return s->net->Test(send, &sent, nullptr); });
    return hit || (done != 0 && sent != 0);
  }));
  if (!hit) R2CC_MUST(HoldsPattern(7, {to.data(), bytes}));
  call(At::kFlush, [&] { return s->net->Flush(pair.recv_comm, to.data(), static_cast<int>(bytes), mhandle, &flush); });
  const bool before = hit;
  call(At::kCloseSend, [&] { return s->net->CloseSend(pair.send_comm); });
  if (before) R2CC_MUST(s->net->CloseSend(pair.send_comm) == Result::kSuccess);
  const bool before_receive = hit;
  call(At::kCloseReceive, [&] { return s->net->CloseReceive(pair.recv_comm); });
  if (before_receive) R2CC_MUST(s->net->CloseReceive(pair.recv_comm) == Result::kSuccess);
  return hit;
}

const Entry kEntries[] = {
    {"init",
     [](Setting* s, const Failure& failure) {
       void* context = nullptr;
       const bool hit = failure.Hits([&] { return s->net->Init(&context); });
       if (!hit) R2CC_MUST(s->net->Finalize(context) == Result::kSuccess);
       return hit;
     }},
    {"finalize",
     [](Setting* s, const Failure& failure) {
       void* context = nullptr;
       R2CC_MUST(s->net->Init(&context) == Result::kSuccess);
       return failure.Hits([&] { return s->net->Finalize(context); });
     }},
    {"devices",
     [](Setting* s, const Failure& failure) {
       int count = 0;
       return failure.Hits([&] { return s->net->Devices(&count); });
     }},
    {"get_properties",
     [](Setting* s, const Failure& failure) {
       std::string name(100, ' ');
       return failure.Hits([&] { return s->net->DeviceName(0, &name); });
     }},
    {"listen", Listen},
    {"connect", [](Setting* s, const Failure& failure) { return ConnectAndAccept(s, failure, true); }},
    {"accept", [](Setting* s, const Failure& failure) { return ConnectAndAccept(s, failure, false); }},
    {"close_listen",
     [](Setting* s, const Failure& failure) {
       alignas(8) uint8_t handle[abi::kNetHandleBytesMax];
       void* listen_comm = nullptr;
       R2CC_MUST(s->net->Listen(s->context, 0, handle, &listen_comm) == Result::kSuccess);
       return failure.Hits([&] { return s->net->CloseListen(listen_comm); });
     }},
    {"reg_mr", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kRegister, kSmall); }},
    {"isend, small", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kSend, kSmall); }},
    {"isend, large", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kSend, kLarge); }},
    {"irecv", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kReceive, kLarge); }},
    {"test of a small isend", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kTestSend, kSmall); }},
    {"test of a large isend", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kTestSend, kLarge); }},
    {"test of a small irecv", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kTestReceive, kSmall); }},
    {"test of a large irecv", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kTestReceive, kLarge); }},
    {"iflush", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kFlush, kSmall); }},
    {"close_send", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kCloseSend, kSmall); }},
    {"close_recv", [](Setting* s, const Failure& failure) { return Message(s, failure, At::kCloseReceive, kSmall); }},
};

class OutOfMemory : public testing::TestWithParam<int> {};

// Each allocation of each entry in turn, once alone and once with all that follow. A flow that was hit may be lost, the others go on.
TEST_P(OutOfMemory, IsAnErrorOfTheCall) {
  for (const Entry& entry : kEntries) {
    OwnProcess process({}, [&entry] {
      Setting setting{NetOf(Library(), GetParam())};
      R2CC_MUST(setting.net->Init(&setting.context) == Result::kSuccess);
      int hits = 0;
      for (const bool all : {false, true})
        for (Failure failure{0, all}; entry.call(&setting, failure); ++failure.number) {
          R2CC_MUST(++hits < 1000);
          Pair other = Pair::Open(setting.net.get(), setting.context, 2);
          other.Transfer(1, 100'000, 100'000);
          other.Close();
        }
      return 0;
    });
    EXPECT_EQ(process.Wait(), 0) << entry.name << "\n" << process.text();
  }
}

// The call that starts the engine. What has failed to start stays an error, also for who calls without init; the last allocations come
// after the start, which then is good.
TEST_P(OutOfMemory, AtTheStartIsAnErrorToo) {
  // Of several hundred; each is tried with the newest table.
  const int stride = GetParam() == kVersionNewest ? 1 : 50;
  bool hit = true;
  for (int number = 0; hit; number += stride)
    for (const bool all : {false, true}) {
      OwnProcess process({}, [&] {
        const std::unique_ptr<Net> net = NetOf(Library(), GetParam());
        void* context = nullptr;
        if (!Failure{number, all}.Hits([&] { return net->Init(&context); })) return 42;
        int count = 0;
        R2CC_MUST(number > 100 || net->Devices(&count) != Result::kSuccess);
        R2CC_MUST(net->Devices(&count) == net->Init(&context));
        return 0;
      });
      const int code = process.Wait();
      ASSERT_TRUE(code == 0 || code == 42) << number << ": " << code << "\n" << process.text();
      hit = code == 0;
    }
}

INSTANTIATE_TEST_SUITE_P(AllVersions, OutOfMemory, testing::Range(kVersionLeast, kVersionNewest + 1),
                         [](const auto& info) { return "v" + std::to_string(info.param); });

}  // namespace
}  // namespace r2cc::plugin_test
