#include "daemon/rpc/view_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

// As large as a view gets: all NICs, all pairs, the longest names.
v1::PushRequest Largest() {
  v1::PushRequest request;
  v1::NodeView& view = *request.mutable_view();
  view.set_node(std::string(63, 'n'));
  for (int i = 0; i < 64; ++i) view.add_nics()->set_name(std::string(23, 'r'));
  for (int i = 0; i < 1024; ++i) {
    v1::RailPair& pair = *view.add_pairs();
    pair.set_nic(std::string(23, 'r'));
    pair.set_peer_node(std::string(63, 'p'));
    pair.set_peer_nic(std::string(23, 'q'));
    pair.set_silent(true);
  }
  return request;
}

TEST(ViewMessage, TheLargestViewPasses) {
  const v1::PushRequest request = Largest();
  v1::PushRequest parsed;
  EXPECT_TRUE(ParseViewMessage(ViewMessageBytes(request), &parsed).ok());
  EXPECT_EQ(parsed.SerializeAsString(), request.SerializeAsString());
}

TEST(ViewMessage, SmallOnTheWireAndLargeInMemoryIsRefusedBeforeItIsParsed) {
  v1::PushReply reply;
  for (size_t i = 0; i < kViewFieldsMax; ++i) reply.mutable_view()->add_nics();
  v1::PushReply parsed;
  EXPECT_THAT(ParseViewMessage(ViewMessageBytes(reply), &parsed).ToString(), HasSubstr("more than 2048 NICs"));
  EXPECT_EQ(parsed.view().nics_size(), 0);
  // In several parts, which the parser would join, and as fields of no release.
  std::string bytes;
  while (bytes.size() < 10'000) bytes += std::string("\x0a\x02\x22\0", 4);
  EXPECT_TRUE(absl::IsResourceExhausted(CheckViewMessage(bytes)));
  bytes.clear();
  while (bytes.size() < 10'000) bytes += std::string("\xfa\x3f\0", 3);
  EXPECT_TRUE(absl::IsResourceExhausted(CheckViewMessage(bytes)));
  EXPECT_TRUE(absl::IsResourceExhausted(CheckViewMessage(std::string(kViewBytesMax + 1, 'x'))));
}

TEST(ViewMessage, FieldsOfAnotherReleaseAreForgotten) {
  const std::string bytes = Largest().SerializeAsString() + std::string("\xfa\x3f\x01x", 4);
  const grpc::Slice slice(bytes);
  v1::PushRequest parsed;
  EXPECT_TRUE(ParseViewMessage(grpc::ByteBuffer(&slice, 1), &parsed).ok());
  EXPECT_EQ(parsed.SerializeAsString(), Largest().SerializeAsString());
}

TEST(ViewMessage, GarbageIsRefused) {
  for (const std::string& bytes :
       {std::string("\x0a\xff\xff\xff\xff\x0f"), std::string("\x0a\x05\x22"), std::string("\xff\xff"), std::string("\x0b\x0b\x0b")}) {
    const grpc::Slice slice(bytes);
    v1::PushRequest parsed;
    EXPECT_FALSE(ParseViewMessage(grpc::ByteBuffer(&slice, 1), &parsed).ok());
  }
}

}  // namespace
}  // namespace r2cc::daemon
