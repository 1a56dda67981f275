#include "netplugin/transport/verbs/offer.h"

#include <gtest/gtest.h>

namespace r2cc::net::verbs {
namespace {

constexpr size_t kEndpointBytesMax = 255;

Offer SomeOffer() {
  Offer offer;
  offer.address = {LinkLayer::kEthernet, {1, 2, 3}, 7};
  offer.number = 0xabcdef;
  offer.psn = 0x123456;
  offer.mtu_bytes = 1024;
  offer.receives = 128;
  offer.adaptive_routing = true;
  offer.records = {0x1000, 1};
  offer.tails = {0x2000, 2};
  offer.proof = {0x3000, 3};
  return offer;
}

TEST(Offer, ComesBackWithinAnEndpoint) {
  const Endpoint bytes = Encode(SomeOffer());
  EXPECT_LE(bytes.size(), kEndpointBytesMax);
  Offer got;
  ASSERT_TRUE(Decode(bytes, &got));
  EXPECT_EQ(got, SomeOffer());
  RailAddress address;
  ASSERT_TRUE(Decode(Encode(SomeOffer().address), &address));
  EXPECT_EQ(address, SomeOffer().address);
  uint32_t key = 0;
  ASSERT_TRUE(DecodeKey(EncodeKey(0xdeadbeef), &key));
  EXPECT_EQ(key, 0xdeadbeef);
}

TEST(Offer, AnotherLengthOrKindIsNoOffer) {
  Offer offer;
  RailAddress address;
  uint32_t key = 0;
  const Endpoint bytes = Encode(SomeOffer());
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_FALSE(Decode(Endpoint(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n)), &offer));
  Endpoint longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(Decode(longer, &offer));
  EXPECT_FALSE(Decode(bytes, &address));
  EXPECT_FALSE(Decode(Encode(SomeOffer().address), &offer));
  EXPECT_FALSE(DecodeKey(bytes, &key));
  EXPECT_FALSE(DecodeKey({}, &key));
}

TEST(Offer, RefusesNumbersThatAreNone) {
  Offer got;
  for (const auto change : {+[](Offer* o) { o->number = 1u << 24; }, +[](Offer* o) { o->psn = 1u << 24; },
                            +[](Offer* o) { o->mtu_bytes = 1500; }, +[](Offer* o) { o->address.link_layer = LinkLayer::kUnknown; }}) {
    Offer bad = SomeOffer();
    change(&bad);
    EXPECT_FALSE(Decode(Encode(bad), &got));
  }
}

}  // namespace
}  // namespace r2cc::net::verbs
