#include "tools/perf/setup.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tools/perf/clock.h"

namespace r2cc::perf {
namespace {

using abi::Result;

constexpr int64_t kYieldOnlyNs = 1'000'000;  // connections of a local job come within this; then poll gently
constexpr long kPollNs = 200'000;

void Pause(int64_t waited_ns) {
  if (waited_ns < kYieldOnlyNs) {
    sched_yield();
    return;
  }
  const timespec pause{0, kPollNs};
  nanosleep(&pause, nullptr);
}

}  // namespace

Status Setup::Failed(const char* call, Result result, const Flow& flow) const {
  return Status::Error(std::string(call) + " returned " + abi::ResultName(result) + " (" + std::to_string(static_cast<int>(result)) +
                       "): " + flow.Describe());
}

Status Setup::Listen(std::string* handles) {
  handles->assign(channels_->size() * ranks_ * abi::kNetHandleBytesMax, '\0');
  for (Channel& channel : *channels_) {
    for (auto& flow : channel.receives) {
      auto pending = std::make_unique<Pending>();
      pending->flow = flow.get();
      const Result result = net_->Listen(flow->channel() % devices_, pending->handle.data(), &pending->listen_comm);
      if (result != Result::kSuccess) return Failed("listen", result, *flow);
      memcpy(handles->data() + HandleAt(flow->channel(), flow->peer()), pending->handle.data(), pending->handle.size());
      pending_.push_back(std::move(pending));
    }
  }
  return {};
}

Status Setup::Connect(const std::vector<std::string>& all_handles, int64_t timeout_ns) {
  for (Channel& channel : *channels_) {
    for (auto& flow : channel.sends) {
      auto pending = std::make_unique<Pending>();
      pending->flow = flow.get();
      pending->sends = true;
      memcpy(pending->handle.data(), all_handles[flow->peer()].data() + HandleAt(flow->channel(), rank_), pending->handle.size());
      pending_.push_back(std::move(pending));
    }
  }
  int64_t progressed = NowNs();
  while (!pending_.empty()) {
    const size_t before = pending_.size();
    for (const auto& pending : pending_) R2CC_PERF_RETURN_IF_ERROR(TryOnce(pending.get()));
    std::erase_if(pending_, [](const auto& pending) { return pending->flow->comm != nullptr; });
    const int64_t now = NowNs();
    if (pending_.size() < before) {
      progressed = now;
    } else if (timeout_ns > 0 && now - progressed > timeout_ns) {
      const Pending& first = *pending_.front();
      char text[160];
      snprintf(text, sizeof(text), "no connection was made for %.1f s (--timeout); %zu are missing, first: %s rank %d on channel %d",
               static_cast<double>(timeout_ns) / 1e9, pending_.size(), first.sends ? "connect to" : "accept from", first.flow->peer(),
               first.flow->channel());
      return Status::Error(text);
    } else {
      Pause(now - progressed);
    }
  }
  return {};
}

Status Setup::TryOnce(Pending* pending) {
  Flow* const flow = pending->flow;
  void* comm = nullptr;
  if (pending->sends) {
    const Result result = net_->Connect(flow->channel() % devices_, pending->handle.data(), &comm);
    if (result != Result::kSuccess) return Failed("connect", result, *flow);
    if (comm == nullptr) return {};
  } else {
    Result result = net_->Accept(pending->listen_comm, &comm);
    if (result != Result::kSuccess) return Failed("accept", result, *flow);
    if (comm == nullptr) return {};
    result = net_->CloseListen(pending->listen_comm);
    if (result != Result::kSuccess) return Failed("closeListen", result, *flow);
  }
  flow->comm = comm;
  return Register(flow);
}

Status Setup::Register(Flow* flow) {
  const Result result = net_->RegisterMemory(flow->comm, flow->memory(), Flow::kMemoryBytes, &flow->mhandle);
  return result == Result::kSuccess ? Status() : Failed("regMr", result, *flow);
}

Status Setup::Close() {
  for (Channel& channel : *channels_) {
    for (auto& flow : channel.sends) {
      Result result = net_->DeregisterMemory(flow->comm, flow->mhandle);
      if (result != Result::kSuccess) return Failed("deregMr", result, *flow);
      result = net_->CloseSend(flow->comm);
      if (result != Result::kSuccess) return Failed("closeSend", result, *flow);
    }
    for (auto& flow : channel.receives) {
      Result result = net_->DeregisterMemory(flow->comm, flow->mhandle);
      if (result != Result::kSuccess) return Failed("deregMr", result, *flow);
      result = net_->CloseReceive(flow->comm);
      if (result != Result::kSuccess) return Failed("closeRecv", result, *flow);
    }
  }
  return {};
}

}  // namespace r2cc::perf
