// Each kind of evidence that r2ccd names has words for people in r2ccctl.
#include <gtest/gtest.h>

#include <string>

#include "client/core/texts.h"
#include "health/evidence/evidence.h"

namespace r2cc::client {
namespace {

TEST(EvidenceText, EveryKindHasAText) {
  int kind = 0;
  for (std::string name; (name = health::EvidenceKindName(static_cast<health::EvidenceKind>(kind))) != "unknown"; ++kind) {
    EXPECT_NE(EvidenceText(name), name) << "add it to client/core/texts.cc";
    EXPECT_NE(EvidenceText(name).find(' '), std::string::npos) << name;
  }
  EXPECT_GT(kind, 20);
  EXPECT_EQ(EvidenceText("of-a-later-release"), "of-a-later-release");
}

}  // namespace
}  // namespace r2cc::client
