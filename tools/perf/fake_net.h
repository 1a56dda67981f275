// Fakes a net in memory, for the tests of code that drives one. It checks the driver: oldest request first, at most kInFlightMax in flight.
#ifndef R2CC_TOOLS_PERF_FAKE_NET_H_
#define R2CC_TOOLS_PERF_FAKE_NET_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tools/perf/flow.h"
#include "tools/perf/net.h"

namespace r2cc::perf {

class FakeNet final : public Net {
 public:
  struct Pipe;
  struct Request {
    Pipe* pipe = nullptr;
    bool sends = false;
    uint8_t* data = nullptr;
    size_t bytes = 0;
    bool done = false;
    bool dead = false;  // reported done
  };
  // One connection; both comms point to it.
  struct Pipe {
    std::deque<Request*> sends, receives;  // outstanding, oldest first
    std::vector<std::unique_ptr<Request>> all;
    int refusals = 0;  // how often isend answers "ask again"
  };

  abi::Result fail_test = abi::Result::kSuccess;
  bool deliver = true;
  int polls = 1;
  int open = 0;  // comms of any kind
  size_t registered_bytes = 0;
  std::vector<int> devices_used;
  std::vector<std::unique_ptr<int>> listeners;  // how often each was asked to accept
  Pipe pipe;                                    // of the connections that setup makes

  struct HandleOf {
    uint64_t magic;
    int calls;
    void* address;
  };
  static constexpr uint64_t kHandleMagic = 0x656c646e6148;

  std::string name() const override { return "FAKE"; }
  int version() const override { return 0; }
  abi::Result Init(uint64_t, abi::Logger) override { return abi::Result::kSuccess; }
  abi::Result Devices(int* count) override { return *count = 1, abi::Result::kSuccess; }
  abi::Result GetProperties(int, DeviceProperties*) override { return abi::Result::kSuccess; }
  // Connecting and accepting take `polls` calls; connect counts them inside the handle, as a plugin may.
  abi::Result Listen(int device, void* handle, void** comm) override {
    devices_used.push_back(device);
    *static_cast<HandleOf*>(handle) = {kHandleMagic, 0, handle};
    listeners.push_back(std::make_unique<int>(0));
    *comm = listeners.back().get();
    ++open;
    return abi::Result::kSuccess;
  }
  abi::Result Connect(int device, void* handle, void** comm) override {
    auto* mine = static_cast<HandleOf*>(handle);
    EXPECT_EQ(mine->magic, kHandleMagic) << "not what listen wrote";
    if (mine->calls == 0) mine->address = handle;
    EXPECT_EQ(mine->address, handle) << "another buffer than in the call before";
    if (++mine->calls < polls) return abi::Result::kSuccess;
    devices_used.push_back(device);
    *comm = &pipe;
    ++open;
    return abi::Result::kSuccess;
  }
  abi::Result Accept(void* listener, void** comm) override {
    if (++*static_cast<int*>(listener) < polls) return abi::Result::kSuccess;
    *comm = &pipe;
    ++open;
    return abi::Result::kSuccess;
  }
  abi::Result RegisterMemory(void* comm, void* data, size_t size, void** mhandle) override {
    EXPECT_EQ(comm, &pipe);
    registered_bytes += size;
    *mhandle = data;
    return abi::Result::kSuccess;
  }
  abi::Result DeregisterMemory(void*, void* mhandle) override {
    registered_bytes -= mhandle != nullptr ? Flow::kMemoryBytes : 0;
    return abi::Result::kSuccess;
  }
  abi::Result CloseSend(void*) override { return --open, abi::Result::kSuccess; }
  abi::Result CloseReceive(void*) override { return --open, abi::Result::kSuccess; }
  abi::Result CloseListen(void*) override { return --open, abi::Result::kSuccess; }
  abi::Result Finalize() override { return abi::Result::kSuccess; }

  abi::Result Send(void* comm, void* data, size_t size, int, void*, void** request) override {
    auto* pipe = static_cast<Pipe*>(comm);
    *request = nullptr;
    if (pipe->refusals-- > 0) return abi::Result::kSuccess;
    *request = Add(pipe, true, data, size);
    return abi::Result::kSuccess;
  }
  abi::Result Receive(void* comm, void* data, size_t size, int, void*, void** request) override {
    *request = Add(static_cast<Pipe*>(comm), false, data, size);
    return abi::Result::kSuccess;
  }
  abi::Result Test(void* opaque, bool* done, int* size) override {
    auto* request = static_cast<Request*>(opaque);
    EXPECT_FALSE(request->dead) << "test() of a request that was reported done";
    Pipe* pipe = request->pipe;
    auto& queue = request->sends ? pipe->sends : pipe->receives;
    EXPECT_EQ(queue.front(), request) << "test() of another request than the oldest";
    if (fail_test != abi::Result::kSuccess) return fail_test;
    if (deliver) Move(pipe);
    *done = request->done;
    if (request->done) {
      *size = static_cast<int>(request->bytes);
      request->dead = true;
      queue.pop_front();
    }
    return abi::Result::kSuccess;
  }

 private:
  Request* Add(Pipe* pipe, bool sends, void* data, size_t size) {
    pipe->all.push_back(std::make_unique<Request>());
    *pipe->all.back() = {pipe, sends, static_cast<uint8_t*>(data), size, false, false};
    auto& queue = sends ? pipe->sends : pipe->receives;
    queue.push_back(pipe->all.back().get());
    EXPECT_LE(queue.size(), static_cast<size_t>(kInFlightMax));
    return queue.back();
  }
  static void Move(Pipe* pipe) {
    const auto undone = [](const Request* request) { return !request->done; };
    for (;;) {
      const auto send = std::find_if(pipe->sends.begin(), pipe->sends.end(), undone);
      const auto receive = std::find_if(pipe->receives.begin(), pipe->receives.end(), undone);
      if (send == pipe->sends.end() || receive == pipe->receives.end()) return;
      memcpy((*receive)->data, (*send)->data, (*send)->bytes);
      (*receive)->bytes = (*send)->bytes;
      (*send)->done = (*receive)->done = true;
    }
  }
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_FAKE_NET_H_
