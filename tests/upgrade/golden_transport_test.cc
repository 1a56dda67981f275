// What TCP, RDMA and collectives of 0.2.0 put into frames, memory and messages is read by this release, and written as then.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "tests/upgrade/golden_files.h"
#include "tests/upgrade/golden_transport_values.h"
#include "tests/upgrade/golden_values.h"

namespace r2cc::golden {
namespace {

TEST(Tcp, EndpointsAreTheSameBytes) {
  EXPECT_EQ(Text(net::RailEndpointOf(TcpAddress())), Golden("tcp_rail"));
  const auto address = net::AddressOf(GoldenBytes("tcp_rail"));
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->Text(), "10.1.0.1");
  EXPECT_EQ(address->port(), 7461);
  EXPECT_EQ(Text(net::PathEndpointOf(kTcpPath)), Golden("tcp_path"));
  const auto path = net::PathOf(GoldenBytes("tcp_path"));
  ASSERT_TRUE(path.has_value());
  EXPECT_FALSE(path->control);
  EXPECT_EQ(path->socket, kTcpPath.socket);
  EXPECT_EQ(path->sockets, kTcpPath.sockets);
}

TEST(Verbs, EndpointsAreTheSameBytes) {
  EXPECT_EQ(Text(net::verbs::Encode(VerbsAddress())), Golden("verbs_rail"));
  net::verbs::RailAddress address;
  ASSERT_TRUE(net::verbs::Decode(GoldenBytes("verbs_rail"), &address));
  EXPECT_EQ(address, VerbsAddress());
  EXPECT_EQ(Text(net::verbs::Encode(VerbsOffer())), Golden("verbs_offer"));
  net::verbs::Offer offer;
  ASSERT_TRUE(net::verbs::Decode(GoldenBytes("verbs_offer"), &offer));
  EXPECT_EQ(offer, VerbsOffer());
  EXPECT_EQ(Text(net::verbs::EncodeKey(kVerbsKey)), Golden("verbs_key"));
  uint32_t key = 0;
  ASSERT_TRUE(net::verbs::DecodeKey(GoldenBytes("verbs_key"), &key));
  EXPECT_EQ(key, kVerbsKey);
}

template <size_t bytes>
std::array<std::byte, bytes> GoldenArray(const std::string& name) {
  std::array<std::byte, bytes> array{};
  const std::string golden = Golden(name);
  EXPECT_EQ(golden.size(), bytes) << name;
  std::memcpy(array.data(), golden.data(), std::min(bytes, golden.size()));
  return array;
}

TEST(Verbs, ImmediatesAndTailsAreTheSameBytes) {
  const uint32_t immediate = net::verbs::ImmediateOf(kVerbsMark);
  EXPECT_EQ(TextOf(immediate), Golden("verbs_immediate"));
  EXPECT_EQ(net::verbs::MarkOf(immediate), kVerbsMark);
  EXPECT_EQ(TextOf(net::verbs::Encode(kVerbsTail, kVerbsMark.ticket, kTag)), Golden("verbs_tail"));
  net::verbs::Tail tail;
  ASSERT_TRUE(net::verbs::Decode(std::span<const std::byte, net::verbs::kTailBytes>(GoldenArray<net::verbs::kTailBytes>("verbs_tail")),
                                 kVerbsMark.ticket, kTag, &tail));
  EXPECT_EQ(tail, kVerbsTail);
}

TEST(Verbs, RecordsAreTheSameBytes) {
  for (const auto& [name, value] : VerbsRecords()) {
    EXPECT_EQ(TextOf(net::verbs::Encode(value, kTag)), Golden(name)) << name;
    const auto bytes = GoldenArray<net::verbs::kRecordBytes>(name);
    net::verbs::Record record;
    ASSERT_TRUE(net::verbs::Decode(std::span<const std::byte, net::verbs::kRecordBytes>(bytes), kTag, &record)) << name;
    EXPECT_TRUE(record == value) << name;
  }
}

std::string Text(const collnet::Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Members of two releases form a group only where both speak the same version.
TEST(Collectives, MessagesAreTheSameBytes) {
  static_assert(collnet::kGroupVersion == kOldGroup, "members of 0.2.0 refuse another: docs/operate/upgrade.md has to say so");
  const auto golden = [](const std::string& name) {
    const std::string text = Golden(name);
    return collnet::Bytes(reinterpret_cast<const std::byte*>(text.data()), reinterpret_cast<const std::byte*>(text.data() + text.size()));
  };
  EXPECT_EQ(Text(collnet::Encode(GroupOffer())), Golden("group_offer"));
  EXPECT_EQ(collnet::Compare(golden("group_offer"), GroupOffer()), "");
  EXPECT_EQ(Text(collnet::Encode(GroupGreeting())), Golden("group_greeting"));
  std::string why;
  EXPECT_EQ(collnet::DecodeGreeting(golden("group_greeting"), &why), GroupGreeting()) << why;
  for (const auto& [name, message] : GroupMessages()) {
    EXPECT_EQ(Text(collnet::Encode(message)), Golden(name)) << name;
    EXPECT_EQ(collnet::Decode(golden(name), kGroupMembers, &why), message) << name << ": " << why;
  }
}

}  // namespace
}  // namespace r2cc::golden
