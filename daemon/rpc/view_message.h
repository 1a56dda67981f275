// Views as they come from another node: looked at before they are parsed, because some bytes on the wire can become many in memory.
#ifndef R2CC_DAEMON_RPC_VIEW_MESSAGE_H_
#define R2CC_DAEMON_RPC_VIEW_MESSAGE_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Bytes of the message with a view. One with all its pairs has some 30 KiB.
constexpr size_t kViewBytesMax = 256 << 10;
// Fields of the message and of the view, each element of a list as one: 1,024 pairs and 64 NICs leave room for new ones. An empty NIC has
// 2 bytes on the wire and some 250 in memory.
constexpr size_t kViewFieldsMax = 2048;

// Whether PushRequest or PushReply has no more than that. Bytes that are no such message pass: parsing refuses them.
absl::Status CheckViewMessage(std::string_view bytes);

// Parses what a peer pushed or answered, v1::PushRequest or v1::PushReply, and forgets the fields that this release does not know.
template <typename Message>
absl::Status ParseViewMessage(const grpc::ByteBuffer& buffer, Message* message) {
  grpc::Slice bytes;
  if (!buffer.DumpToSingleSlice(&bytes).ok()) return absl::InvalidArgumentError("a garbled view");
  const std::string_view text(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  if (absl::Status status = CheckViewMessage(text); !status.ok()) return status;
  if (!message->ParseFromArray(text.data(), static_cast<int>(text.size()))) return absl::InvalidArgumentError("a garbled view");
  message->DiscardUnknownFields();
  return absl::OkStatus();
}

template <typename Message>
grpc::ByteBuffer ViewMessageBytes(const Message& message) {
  const grpc::Slice bytes(message.SerializeAsString());
  return grpc::ByteBuffer(&bytes, 1);
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_VIEW_MESSAGE_H_
