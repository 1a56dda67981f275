#include "tests/plugin/pair.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tests/plugin/own_process.h"

namespace r2cc::plugin_test {

using abi::Result;

namespace {

// Messages of the tests that ask for it are zeros.
constexpr uint8_t kReused = 0xa5;

}  // namespace

Pages::Pages(size_t bytes) : bytes_(bytes == 0 ? 1 : bytes) {
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  R2CC_MUST(memory != MAP_FAILED);
  data_ = static_cast<uint8_t*>(memory);
}

Pages::Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

void Pages::Free() {
  if (data_ != nullptr) munmap(std::exchange(data_, nullptr), bytes_);
}

void Pages::Forbid() { R2CC_MUST(mmap(data_, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == data_); }

void Pages::Reuse() {
  R2CC_MUST(mmap(data_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == data_);
  std::memset(data_, kReused, bytes_);
}

bool Pages::Untouched() const {
  return std::all_of(data_, data_ + bytes_, [](uint8_t byte) { return byte == kReused; });
}

void FillPattern(uint64_t number, std::span<uint8_t> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = PatternAt(number, i);
}

bool HoldsPattern(uint64_t number, std::span<const uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != PatternAt(number, i)) return false;
  return true;
}

Pair Pair::Open(Net* net, void* context, int device, double limit_s) {
  Pair pair;
  pair.net = net;
  void* listen_comm = nullptr;
  alignas(8) uint8_t handle[abi::kNetHandleBytesMax];
  R2CC_MUST(net->Listen(context, device, handle, &listen_comm) == Result::kSuccess && listen_comm != nullptr);
  R2CC_MUST(Await(limit_s, [&] {
    if (pair.send_comm == nullptr) R2CC_MUST(net->Connect(context, device, handle, &pair.send_comm) == Result::kSuccess);
    if (pair.recv_comm == nullptr) R2CC_MUST(net->Accept(listen_comm, &pair.recv_comm) == Result::kSuccess);
    return pair.send_comm != nullptr && pair.recv_comm != nullptr;
  }));
  R2CC_MUST(net->CloseListen(listen_comm) == Result::kSuccess);
  return pair;
}

void Pair::Close() {
  R2CC_MUST(net->CloseSend(std::exchange(send_comm, nullptr)) == Result::kSuccess);
  R2CC_MUST(net->CloseReceive(std::exchange(recv_comm, nullptr)) == Result::kSuccess);
}

void* Pair::Send(void* data, size_t bytes, void* mhandle) {
  void* request = nullptr;
  R2CC_MUST(Await(kLimitS, [&] {
    R2CC_MUST(net->Send(send_comm, data, bytes, mhandle, &request) == Result::kSuccess);
    return request != nullptr;
  }));
  return request;
}

void* Pair::Receive(void* data, size_t bytes, void* mhandle) {
  void* request = nullptr;
  R2CC_MUST(Await(kLimitS, [&] {
    R2CC_MUST(net->Receive(recv_comm, data, bytes, mhandle, &request) == Result::kSuccess);
    return request != nullptr;
  }));
  return request;
}

void Pair::Transfer(uint64_t number, size_t bytes, size_t capacity) {
  Pages from(bytes), to(capacity);
  FillPattern(number, {from.data(), bytes});
  void* receive = Receive(to.data(), capacity);
  void* send = Send(from.data(), bytes);
  R2CC_MUST(Finish(net, receive) == static_cast<int>(bytes));
  R2CC_MUST(Finish(net, send) == static_cast<int>(bytes));
  R2CC_MUST(HoldsPattern(number, {to.data(), bytes}));
}

int Finish(Net* net, void* request, double limit_s) {
  int done = 0, bytes = 0;
  Result result = Result::kSuccess;
  R2CC_MUST(Await(limit_s, [&] {
    result = net->Test(request, &done, &bytes);
    return done != 0 || result != Result::kSuccess;
  }));
  return result == Result::kSuccess ? bytes : -1;
}

}  // namespace r2cc::plugin_test
