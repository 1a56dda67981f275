#include "tests/contract/job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace r2cc::contract {
namespace {

constexpr std::byte kUntouched{0x5a};  // in a receive buffer before its message
constexpr std::byte kPoison{0xee};     // after it
constexpr std::byte kSpent{0xdd};      // in a send buffer after it was reported done
constexpr size_t kGuardBytes = 256;    // behind each receive buffer
// Used buffers rest until so many others were used: a late write comes late.
constexpr size_t kResting = 32;

// Contents that depend on flow, message and place: stale and swapped chunks differ everywhere.
uint64_t Word(int flow, uint64_t message, size_t index) {
  uint64_t x = (static_cast<uint64_t>(flow) << 56) ^ (message << 32) ^ index ^ 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

void Fill(int flow, uint64_t message, std::byte* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t word = Word(flow, message, at);
    std::memcpy(data + at, &word, std::min(sizeof(word), bytes - at));
  }
}

// The first byte that is not as it must be; `bytes` if there is none.
size_t FirstWrong(int flow, uint64_t message, const std::byte* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    const uint64_t word = Word(flow, message, at);
    if (std::memcmp(data + at, &word, std::min(sizeof(word), bytes - at)) != 0) return at;
  }
  return bytes;
}

bool IsAll(const std::byte* data, size_t bytes, std::byte value) {
  return std::all_of(data, data + bytes, [value](std::byte b) { return b == value; });
}

}  // namespace

int Job::Open(End from, int rail) {
  const int flow = world_->Open(from, rail);
  EXPECT_EQ(flow, static_cast<int>(flows_.size()));
  flows_.emplace_back().from = from;
  return flow;
}

Job::Buffer Job::Take(Pool* pool, End end, size_t capacity) {
  auto& resting = (*pool)[{end, capacity}];
  if (resting.size() <= kResting) return {world_->Allocate(end, capacity + kGuardBytes), capacity};
  const Buffer buffer = resting.front();
  resting.pop_front();
  if (pool == &poisoned_) {
    EXPECT_TRUE(IsAll(buffer.data, capacity + kGuardBytes, kPoison)) << "a buffer was written after its receive was reported done";
  }
  return buffer;
}

void Job::Send(int number, size_t bytes) {
  Flow& flow = flows_[static_cast<size_t>(number)];
  Outgoing out{Take(&spent_, flow.from, bytes), bytes};
  Fill(number, flow.sends.size(), out.buffer.data, bytes);
  flow.sends.push_back(out);
  if (completed_at_ == 0) ResetGap();
  world_->Send(number, out.buffer.data, bytes);
}

void Job::Receive(int number, size_t capacity) {
  Flow& flow = flows_[static_cast<size_t>(number)];
  const Buffer buffer = Take(&poisoned_, 1 - flow.from, capacity);
  std::fill_n(buffer.data, capacity + kGuardBytes, kUntouched);
  flow.receives.push_back(buffer);
  if (completed_at_ == 0) ResetGap();
  world_->Receive(number, buffer.data, capacity);
}

void Job::Reset(int number) {
  Flow& flow = flows_[static_cast<size_t>(number)];
  flow.abandoned = true;
  if (world_->receiver(number) != FlowState::kClosed) return;
  for (; flow.received < flow.receives.size(); ++flow.received) {
    const Buffer& buffer = flow.receives[flow.received];
    std::fill_n(buffer.data, buffer.capacity + kGuardBytes, kPoison);
    poisoned_[{1 - flow.from, buffer.capacity}].push_back(buffer);
  }
}

bool Job::Waits(const Flow& flow) const {
  if (flow.abandoned) return false;
  const bool receives = !gone_[1 - flow.from] && flow.received < flow.receives.size();
  const bool sends = !gone_[flow.from] && flow.sent < flow.sends.size();
  return receives || sends;
}

bool Job::done() const {
  return std::none_of(flows_.begin(), flows_.end(), [this](const Flow& flow) { return Waits(flow); });
}

bool Job::busy() const {
  return std::all_of(flows_.begin(), flows_.end(),
                     [](const Flow& flow) { return flow.received < flow.receives.size() && flow.sent < flow.sends.size(); });
}

void Job::ResetGap() {
  longest_gap_ = 0;
  completed_at_ = world_->Now();
}

void Job::CheckReceived(int number, Flow* flow) {
  const uint64_t message = flow->received;
  const Buffer& buffer = flow->receives[message];
  ASSERT_LT(message, flow->sends.size()) << "flow " << number << ": a message that was never sent";
  const size_t bytes = world_->SizeOf(number, message);
  ASSERT_EQ(bytes, flow->sends[message].bytes) << "flow " << number << " message " << message;
  ASSERT_EQ(FirstWrong(number, message, buffer.data, bytes), bytes) << "wrong bytes: flow " << number << " message " << message;
  ASSERT_TRUE(IsAll(buffer.data + bytes, buffer.capacity + kGuardBytes - bytes, kUntouched)) << "written beyond the message";
  // From here on it is the job's: any write is one too many.
  std::fill_n(buffer.data, buffer.capacity + kGuardBytes, kPoison);
  poisoned_[{1 - flow->from, buffer.capacity}].push_back(buffer);
  received_bytes_ += bytes;
  ++received_messages_;
}

void Job::Check() {
  const uint64_t before = completions_;
  for (size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    const int number = static_cast<int>(i);
    if (flow.abandoned) continue;
    const uint64_t received = gone_[1 - flow.from] ? flow.received : world_->Received(number);
    ASSERT_LE(received, flow.receives.size()) << "flow " << number << ": more receives done than posted";
    for (; flow.received < received; ++flow.received, ++completions_) ASSERT_NO_FATAL_FAILURE(CheckReceived(number, &flow));
    const uint64_t sent = gone_[flow.from] ? flow.sent : world_->Sent(number);
    ASSERT_LE(sent, flow.sends.size()) << "flow " << number << ": more sends done than posted";
    for (; flow.sent < sent; ++flow.sent, ++completions_) {
      const Outgoing& out = flow.sends[flow.sent];
      std::fill_n(out.buffer.data, out.bytes, kSpent);
      spent_[{flow.from, out.buffer.capacity}].push_back(out.buffer);
      if (gone_[1 - flow.from] || flow.sent < flow.received) continue;
      ASSERT_LT(flow.sent, flow.received + kEagerMessages) << "flow " << number << ": more messages ahead than there is credit for";
      if (out.bytes <= kEagerBytes) continue;
      // The receiver's word may be a moment behind its deed.
      ASSERT_LT(flow.sent, flow.receives.size()) << "flow " << number << ": reported sent, and nobody has posted a buffer for it";
      ASSERT_EQ(FirstWrong(number, flow.sent, flow.receives[flow.sent].data, out.bytes), out.bytes)
          << "flow " << number << " message " << flow.sent << " was reported sent before it was placed";
    }
  }
  const Nanos now = world_->Now();
  if (completed_at_ == 0) return;
  longest_gap_ = std::max(longest_gap_, now - completed_at_);
  if (completions_ != before || done()) completed_at_ = now;
}

bool Job::RunUntil(const std::function<bool()>& condition, Nanos limit) {
  const Nanos end = world_->Now() + limit;
  for (;;) {
    world_->Pass();
    Check();
    if (testing::Test::HasFatalFailure()) return false;
    if (condition()) return true;
    if (world_->Now() >= end) return false;
  }
}

bool Job::RunUntilOpen(Nanos limit) {
  return RunUntil(
      [this] {
        for (size_t i = 0; i < flows_.size(); ++i)
          if (world_->sender(static_cast<int>(i)) != FlowState::kOpen || world_->receiver(static_cast<int>(i)) != FlowState::kOpen)
            return false;
        return true;
      },
      limit);
}

bool Job::Stream(const std::vector<int>& flows, size_t bytes, int outstanding, const std::function<bool()>& condition, Nanos limit) {
  return RunUntil(
      [&] {
        if (condition()) return true;
        for (const int number : flows) {
          const Flow& flow = flows_[static_cast<size_t>(number)];
          while (flow.sends.size() < std::min(flow.sent, flow.received) + static_cast<uint64_t>(outstanding)) Exchange(number, bytes);
        }
        return false;
      },
      limit);
}

void Job::CheckPoison() {
  for (const auto& [key, buffers] : poisoned_)
    for (const Buffer& buffer : buffers)
      ASSERT_TRUE(IsAll(buffer.data, buffer.capacity + kGuardBytes, kPoison)) << "a buffer was written after its receive was reported done";
}

}  // namespace r2cc::contract
