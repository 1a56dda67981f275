#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "bazel/processor_seconds.h"

namespace {

// R2CC_REQUIRE=root,etcd,... names what this run promises to have: a test skipped with "needs root: ..." is then a failure.
// Told at the test's end: a failure raised while a result is being reported would wait for GoogleTest's own lock for ever.
class RequiredMeansNoSkip : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {
    const char* required = std::getenv("R2CC_REQUIRE");
    for (int i = 0, parts = test.result()->total_part_count(); i < parts; ++i) {
      const testing::TestPartResult& part = test.result()->GetTestPartResult(i);
      if (!part.skipped()) continue;
      const std::string reason = part.message();
      std::istringstream names(required == nullptr ? "" : required);
      for (std::string name; std::getline(names, name, ',');)
        if (!name.empty() && reason.find("needs " + name) != std::string::npos)
          ADD_FAILURE() << "skipped although R2CC_REQUIRE promises '" << name << "'";
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new RequiredMeansNoSkip);
  r2cc::RecordProcessorSeconds();
  return RUN_ALL_TESTS();
}
