#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "client/core/causes.h"

namespace r2cc::client {
namespace {

TEST(CausesReferenceTest, TheCommittedPageIsMadeOfTheTables) {
  std::ifstream file("docs/reference/causes.md");
  std::ostringstream committed;
  committed << file.rdbuf();
  EXPECT_EQ(committed.str(), CausesReference()) << "./bazelw run //client:causes_reference > docs/reference/causes.md";
}

}  // namespace
}  // namespace r2cc::client
