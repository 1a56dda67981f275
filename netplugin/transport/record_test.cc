#include "netplugin/transport/record.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "netplugin/transport/fake_peer.h"
#include "plan/page/gave_up.h"

namespace r2cc::net {
namespace {

struct RecordGaveUpTest : testing::Test {
  RecordGaveUpTest() {
    host.report = [this](const plan::EvidenceRecord& record) { records.push_back(record); };
    host.rails.resize(32);
    host.page = [] { return std::make_shared<const PageView>(); };
  }
  FakeClock clock;
  FakeHost host{&clock};
  std::vector<plan::EvidenceRecord> records;
};

TEST_F(RecordGaveUpTest, WithoutFatesTheRecordIsOfNoRail) {
  RecordGaveUp(&host, "n1", {}, {}, {}, kNanosPerSecond);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].bytes, plan::kNoRail);
}

TEST_F(RecordGaveUpTest, EachFateIsARecordOfItsRail) {
  const std::vector<LinkFate> fates = {{0, 1, plan::EvidenceCause::kSilence, 1}, {31, 0, plan::EvidenceCause::kLinkDown, 1}};
  RecordGaveUp(&host, "n1", {}, {}, fates, kNanosPerSecond);
  ASSERT_EQ(records.size(), 2u);
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].local_rail, fates[i].local_rail);
    EXPECT_NE(records[i].bytes, plan::kNoRail);
  }
}

}  // namespace
}  // namespace r2cc::net
