#include "base/core/siphash.h"

#include <gtest/gtest.h>

#include <string>

namespace r2cc {
namespace {

// From the reference implementation's vectors_sip64: key 00 to 0f, inputs 00, 01, ...
TEST(SipHash24, IsThatOfItsAuthors) {
  constexpr SipKey kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  const auto upto = [&](int bytes) {
    text.clear();
    for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(i));
    return text;
  };
  EXPECT_EQ(SipHash24(kKey, upto(0)), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(SipHash24(kKey, upto(1)), 0x74f839c593dc67fdu);
  EXPECT_EQ(SipHash24(kKey, upto(15)), 0xa129ca6149be45e5u);
  EXPECT_NE(SipHash24({1, 2}, "n1/rail0"), SipHash24({1, 3}, "n1/rail0"));
}

}  // namespace
}  // namespace r2cc
