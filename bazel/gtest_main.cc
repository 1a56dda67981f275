#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace {

// R2CC_REQUIRE=root,etcd,... names what this run promises to have: a test skipped with "needs root: ..." is then a failure.
class RequiredMeansNoSkip : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.skipped()) return;
    const char* required = std::getenv("R2CC_REQUIRE");
    std::istringstream names(required == nullptr ? "" : required);
    for (std::string name; std::getline(names, name, ',');)
      if (!name.empty() && std::string(result.message()).find("needs " + name) != std::string::npos)
        ADD_FAILURE() << "skipped although R2CC_REQUIRE promises '" << name << "'";
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new RequiredMeansNoSkip);
  return RUN_ALL_TESTS();
}
