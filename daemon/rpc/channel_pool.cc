#include "daemon/rpc/channel_pool.h"

#include <algorithm>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace r2cc::daemon {
namespace {

// A channel without credentials fails each call at once. Its first one ties it to gRPC's callback threads.
struct Anchor {
  Anchor() : channel(grpc::CreateCustomChannel("", std::shared_ptr<grpc::ChannelCredentials>(), grpc::ChannelArguments())), stub(channel) {
    stub.UnaryCall(&context, "/r2cc.anchor/None", grpc::StubOptions(), &request, &reply, [](const grpc::Status&) {});
  }
  const std::shared_ptr<grpc::Channel> channel;
  grpc::GenericStub stub;
  grpc::ClientContext context;
  const grpc::Slice nothing;
  const grpc::ByteBuffer request{&nothing, 1};
  grpc::ByteBuffer reply;
};

}  // namespace

std::shared_ptr<grpc::Channel> ChannelPool::Get(const std::string& way, const Make& make) {
  absl::MutexLock lock(&mutex_);
  if (const auto found = channels_.find(way); found != channels_.end())
    if (auto channel = found->second.lock(); channel != nullptr) return channel;
  std::erase_if(channels_, [](const auto& entry) { return entry.second.expired(); });
  LetChannelsEndAnywhere();
  auto channel = make();
  channels_[way] = channel;
  return channel;
}

size_t ChannelPool::open() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<size_t>(std::count_if(channels_.begin(), channels_.end(), [](const auto& entry) { return !entry.second.expired(); }));
}

void LetChannelsEndAnywhere() {
  static const auto* const anchor = new Anchor;
  (void)anchor;
}

}  // namespace r2cc::daemon
