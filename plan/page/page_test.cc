#include "plan/page/page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "base/core/hash.h"
#include "plan/page/hostile_page.h"
#include "plan/page/page_layout.h"

namespace r2cc::plan {
namespace {

std::unique_ptr<PageReader> OpenSame(const PageWriter& writer) {
  std::string error;
  auto reader = PageReader::Open(dup(writer.fd()), &error);
  EXPECT_NE(reader, nullptr) << error;
  return reader;
}

std::string RefusalOf(HostilePage& page) {
  std::string error;
  EXPECT_EQ(page.Open(&error), nullptr);
  EXPECT_EQ(error.find('\n'), std::string::npos);
  return error;
}

TEST(Page, RoundTrip) {
  std::string error;
  auto writer = PageWriter::Create(&error);
  ASSERT_NE(writer, nullptr) << error;
  auto reader = OpenSame(*writer);
  EXPECT_NE(reader->Refresh(), PageReader::Read::kRefused);
  EXPECT_EQ(reader->copy().epoch, Epoch{});
  EXPECT_TRUE(reader->copy().entries.empty());

  Plan plan = PlanOf(1, 20);
  plan.nics[3].weight_permille = 250;
  plan.nics[3].state = PlannedState::kDegraded;
  ASSERT_TRUE(writer->Publish(plan, 10 * kNanosPerSecond, &error)) << error;
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kNew);
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kUnchanged);
  EXPECT_EQ(reader->copy().epoch, plan.epoch);
  ASSERT_EQ(reader->copy().entries.size(), 20u);
  for (const PlannedNic& nic : plan.nics) {
    const PageEntry* entry = reader->copy().Find(Fnv1a64(nic.node), Fnv1a64(nic.nic));
    ASSERT_NE(entry, nullptr) << nic.node << "/" << nic.nic;
    EXPECT_EQ(entry->weight_permille, nic.weight_permille);
    EXPECT_EQ(entry->state, static_cast<uint8_t>(nic.state));
  }
  EXPECT_EQ(reader->copy().Find(Fnv1a64("node0"), Fnv1a64("nic9")), nullptr);
  EXPECT_EQ(reader->copy().Find(0, 0), nullptr);
  EXPECT_EQ(reader->copy().Find(~0ull, ~0ull), nullptr);
}

TEST(Page, ABrokenPathIsForbiddenBothWaysAndNothingElse) {
  std::string error;
  auto writer = PageWriter::Create(&error);
  auto reader = OpenSame(*writer);
  Plan plan = PlanOf(1, 24);
  plan.broken_paths = {{"node0", "nic1", "node2", "nic3"}};
  ASSERT_TRUE(writer->Publish(plan, 1, &error)) << error;
  ASSERT_EQ(reader->Refresh(), PageReader::Read::kNew);
  EXPECT_TRUE(reader->copy().PathBroken("node0", "nic1", "node2", "nic3"));
  EXPECT_TRUE(reader->copy().PathBroken("node2", "nic3", "node0", "nic1"));
  EXPECT_FALSE(reader->copy().PathBroken("node0", "nic3", "node2", "nic1"));
  EXPECT_FALSE(reader->copy().PathBroken("node0", "nic1", "node1", "nic3"));
  EXPECT_EQ(reader->copy().entries.size(), 25u);
  for (const PlannedNic& nic : plan.nics) EXPECT_EQ(reader->copy().Find(Fnv1a64(nic.node), Fnv1a64(nic.nic))->weight_permille, 1000);

  plan.epoch.counter = 2;
  plan.broken_paths.push_back(plan.broken_paths[0]);
  EXPECT_FALSE(writer->Publish(plan, 1, &error));
  EXPECT_EQ(error, "plan names a NIC or a broken path twice");
  plan.broken_paths.clear();
  ASSERT_TRUE(writer->Publish(plan, 1, &error)) << error;
  ASSERT_EQ(reader->Refresh(), PageReader::Read::kNew);
  EXPECT_FALSE(reader->copy().PathBroken("node0", "nic1", "node2", "nic3"));
}

TEST(Page, HoldsItsCapacityAndNoMore) {
  std::string error;
  auto writer = PageWriter::Create(&error);
  auto reader = OpenSame(*writer);
  ASSERT_TRUE(writer->Publish(PlanOf(1, kPageEntriesMax), 1, &error)) << error;
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kNew);
  EXPECT_EQ(reader->copy().entries.size(), kPageEntriesMax);
  EXPECT_FALSE(writer->Publish(PlanOf(2, kPageEntriesMax + 1), 1, &error));
  EXPECT_NE(error.find("65537"), std::string::npos) << error;
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kUnchanged);
}

TEST(Page, PublishRefusesWhatIsNoNewPlanAndChangesNothing) {
  std::string error;
  auto writer = PageWriter::Create(&error);
  auto reader = OpenSame(*writer);
  EXPECT_FALSE(writer->Publish(Plan{}, 1, &error));  // epoch 0 is "never"
  ASSERT_TRUE(writer->Publish(PlanOf(5, 3), 1, &error));
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kNew);
  EXPECT_FALSE(writer->Publish(PlanOf(5, 4), 1, &error));
  EXPECT_FALSE(writer->Publish(PlanOf(4, 4), 1, &error));
  EXPECT_NE(error.find("epoch"), std::string::npos);
  EXPECT_FALSE(writer->Publish(PlanOf(6, 4, 1001), 1, &error));
  EXPECT_NE(error.find("node0/nic0"), std::string::npos) << error;
  Plan twice = PlanOf(6, 4);
  twice.nics.push_back(twice.nics[1]);
  EXPECT_FALSE(writer->Publish(twice, 1, &error));
  EXPECT_NE(error.find("twice"), std::string::npos);
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kUnchanged);
  EXPECT_TRUE(writer->Publish(PlanOf(6, 0), 1, &error));  // an empty plan is a plan
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kNew);
  EXPECT_TRUE(reader->copy().entries.empty());
}

TEST(Page, HeartbeatGoesStaleAndComesBack) {
  std::string error;
  auto writer = PageWriter::Create(&error);
  auto reader = OpenSame(*writer);
  const Nanos start = 100 * kNanosPerSecond;
  EXPECT_TRUE(reader->Stale(start));
  writer->Heartbeat(start);
  EXPECT_FALSE(reader->Stale(start));
  EXPECT_FALSE(reader->Stale(start - kNanosPerMs));  // a reader's `now` may be a little older than the heartbeat
  EXPECT_FALSE(reader->Stale(start + kPageStaleAfter));
  EXPECT_TRUE(reader->Stale(start + kPageStaleAfter + 1));
  EXPECT_TRUE(reader->Stale(start - kPageStaleAfter - 1));
  ASSERT_TRUE(writer->Publish(PlanOf(1, 1), start + 3 * kPageStaleAfter, &error));
  EXPECT_FALSE(reader->Stale(start + 3 * kPageStaleAfter));
}

TEST(Page, AJobCannotWriteIt) {
  std::string error;
  auto writer = PageWriter::Create(&error);
  const int fd = dup(writer->fd());
  EXPECT_EQ(mmap(nullptr, sizeof(PageLayout), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_LT(pwrite(fd, "x", 1, 0), 0);
  EXPECT_NE(ftruncate(fd, 0), 0);
  EXPECT_NE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
  const std::string again = "/proc/self/fd/" + std::to_string(fd);
  const int reopened = open(again.c_str(), O_RDWR | O_CLOEXEC);
  if (reopened >= 0) {
    EXPECT_LT(pwrite(reopened, "x", 1, 0), 0);
    close(reopened);
  }
  close(fd);
}

TEST(Page, ReaderOutlivesTheWriter) {
  std::string error;
  auto writer = PageWriter::Create(&error);
  ASSERT_TRUE(writer->Publish(PlanOf(1, 5), 7, &error));
  auto reader = OpenSame(*writer);
  writer.reset();
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kNew);
  EXPECT_EQ(reader->copy().entries.size(), 5u);
}

TEST(HostilePage, GoodOneIsAccepted) {  // so that the refusals below are for their own reason
  HostilePage page;
  page.Fill(PageCopyOf(PlanOf(1, 3)));
  page.Seal();
  std::string error;
  auto reader = page.Open(&error);
  ASSERT_NE(reader, nullptr) << error;
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kNew);
}

TEST(HostilePage, BadDescriptorsAreRefused) {
  std::string error;
  EXPECT_EQ(PageReader::Open(-1, &error), nullptr);
  EXPECT_FALSE(error.empty());
  EXPECT_EQ(PageReader::Open(open("/dev/zero", O_RDONLY | O_CLOEXEC), &error), nullptr);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  EXPECT_EQ(PageReader::Open(ends[0], &error), nullptr);
  EXPECT_LT(fcntl(ends[0], F_GETFD), 0) << "the refused descriptor was left open";
  close(ends[1]);
}

TEST(HostilePage, HeaderSizeAndSealsAreChecked) {
  {
    HostilePage page(8);
    EXPECT_EQ(RefusalOf(page), "page is too short to have a header");
  }
  {
    HostilePage page(4096);
    page.Seal();
    EXPECT_EQ(RefusalOf(page), "page has 4096 bytes instead of " + std::to_string(kPageBytes));
  }
  {
    HostilePage page(sizeof(PageLayout) + 4096);
    page.Seal();
    EXPECT_NE(RefusalOf(page).find("instead of"), std::string::npos);
  }
  {
    HostilePage page;
    page->magic ^= 1;
    page.Seal();
    EXPECT_NE(RefusalOf(page).find("magic"), std::string::npos);
  }
  {
    HostilePage page;
    page->version = 7;
    page.Seal();
    EXPECT_EQ(RefusalOf(page), "page version 7, this release reads 2 to 3: upgrade r2ccd or the plugin");
  }
  const int all[] = {F_SEAL_SHRINK, F_SEAL_GROW, 0x0010 /* FUTURE_WRITE */, F_SEAL_SEAL};
  for (int missing : all) {
    HostilePage page;
    int seals = 0;
    for (int seal : all) seals |= seal == missing ? 0 : seal;
    page.Seal(seals);
    EXPECT_EQ(RefusalOf(page), "page is not sealed: refused");
  }
}

// Each of these is refused and leaves the last good copy; a sound body afterwards is taken again.
TEST(HostilePage, GarbledBodiesAreRefusedWhole) {
  const std::vector<std::pair<const char*, std::function<void(HostilePage&)>>> harms = {
      {"checksum", [](HostilePage& page) { page->sequence += 2, page->checksum ^= 1; }},
      {"checksum's high half", [](HostilePage& page) { page->sequence += 2, page->checksum |= 1ull << 40; }},
      {"flipped entry", [](HostilePage& page) { page->sequence += 2, page->body[kPageBodyEntries] ^= 4; }},
      {"count over the capacity", [](HostilePage& page) { page->sequence += 2, page->body[kPageBodyEntryCount] = kPageEntriesMax + 1; }},
      {"count of everything", [](HostilePage& page) { page->sequence += 2, page->body[kPageBodyEntryCount] = ~0ull; }},
      {"torn for ever", [](HostilePage& page) { page->sequence += 1; }},
      {"weight", [](HostilePage& page) { page->body[kPageBodyEntries + 2] = 1001, page.Sign(); }},
      {"state", [](HostilePage& page) { page->body[kPageBodyEntries + 2] = 6 << 16, page.Sign(); }},
      {"order", [](HostilePage& page) { page->body[kPageBodyEntries] = ~0ull, page.Sign(); }},
      {"a NIC twice",
       [](HostilePage& page) { std::memcpy(&page->body[kPageBodyEntries], &page->body[kPageBodyEntries + 3], 24), page.Sign(); }},
      {"earlier epoch", [](HostilePage& page) { page->body[kPageBodyEpochCounter] = 4, page.Sign(); }},
      {"another life", [](HostilePage& page) { page->body[kPageBodyIncarnation] = ~0ull, page.Sign(); }},
      {"no life", [](HostilePage& page) { page->body[kPageBodyIncarnation] = page->body[kPageBodyEpochCounter] = 0, page.Sign(); }},
  };
  for (const auto& [name, harm] : harms) {
    SCOPED_TRACE(name);
    HostilePage page;
    page.Fill(PageCopyOf(PlanOf(5, 3)));
    page.Seal();
    std::string error;
    auto reader = page.Open(&error);
    ASSERT_NE(reader, nullptr) << error;
    ASSERT_EQ(reader->Refresh(), PageReader::Read::kNew);
    harm(page);
    EXPECT_EQ(reader->Refresh(), PageReader::Read::kRefused);
    EXPECT_EQ(reader->Refresh(), PageReader::Read::kRefused);
    EXPECT_EQ(reader->refusals(), 2u);
    EXPECT_EQ(reader->copy().epoch.counter, 5u);
    EXPECT_EQ(reader->copy().entries.size(), 3u);
    page->sequence += page->sequence % 2;
    page.Fill(PageCopyOf(PlanOf(6, 4)));
    EXPECT_EQ(reader->Refresh(), PageReader::Read::kNew);
    EXPECT_EQ(reader->copy().entries.size(), 4u);
  }
}

TEST(HostilePage, WriterThatDiesHalfWayLeavesTheLastGoodCopy) {
  HostilePage page;
  page.Fill(PageCopyOf(PlanOf(1, 8)));
  page.Seal();
  std::string error;
  auto reader = page.Open(&error);
  ASSERT_EQ(reader->Refresh(), PageReader::Read::kNew);
  page->sequence += 1;
  for (int i = 0; i < 10; ++i) page->body[kPageBodyEntries + i] = 99;
  EXPECT_EQ(reader->Refresh(), PageReader::Read::kRefused);
  EXPECT_EQ(reader->copy().entries.size(), 8u);
}

// Every plan that a reader ever sees is whole: all weights of one plan are equal and belong to its epoch.
TEST(PageStress, ReaderSeesOnlyWholePlansInOrder) {
  std::string error;
  auto writer = PageWriter::Create(&error);
  auto reader = OpenSame(*writer);
  std::atomic<bool> stop{false};
  constexpr int kPlans = 3000;
  std::thread publisher([&] {
    std::string publish_error;
    for (uint64_t i = 1; i <= kPlans; ++i) {
      const Plan plan = PlanOf(i, static_cast<int>(1 + i % 200), static_cast<uint16_t>(i % 1001));
      ASSERT_TRUE(writer->Publish(plan, static_cast<Nanos>(i), &publish_error)) << publish_error;
    }
    stop = true;
  });
  uint64_t last = 0;
  uint64_t news = 0;
  for (bool ending = false; !ending;) {
    ending = stop;
    if (reader->Refresh() != PageReader::Read::kNew) continue;
    ++news;
    const PageCopy& copy = reader->copy();
    ASSERT_GT(copy.epoch.counter, last);
    last = copy.epoch.counter;
    ASSERT_EQ(copy.entries.size(), 1 + last % 200);
    for (const PageEntry& entry : copy.entries) ASSERT_EQ(entry.weight_permille, last % 1001);
  }
  publisher.join();
  EXPECT_EQ(last, static_cast<uint64_t>(kPlans));
  EXPECT_GT(news, 0u);
}

TEST(PageFuzz, MutatedBodiesNeverGetThroughUnsound) {
  HostilePage page;
  page.Seal();
  std::string error;
  auto reader = page.Open(&error);
  ASSERT_NE(reader, nullptr) << error;
  std::mt19937_64 random(3);
  uint64_t taken = 0, refused = 0;
  uint64_t counter = 0;
  for (int i = 0; i < 100'000; ++i) {
    page->sequence += page->sequence % 2;
    page.Fill(PageCopyOf(PlanOf(++counter, static_cast<int>(random() % 12))));
    const size_t used = kPageBodyEntries + page->body[kPageBodyEntryCount] * kPageEntryWords;
    for (uint64_t flips = random() % 3; flips > 0; --flips) page->body[3 + random() % (used - 3)] ^= 1ull << (random() % 64);
    if (random() % 4 == 0) page->sequence = random();
    if (random() % 2 == 0 && page->body[kPageBodyEntryCount] <= kPageEntriesMax) page.Sign();  // an adversary signs what it garbles
    const PageReader::Read read = reader->Refresh();
    taken += read == PageReader::Read::kNew;
    refused += read == PageReader::Read::kRefused;
    ASSERT_LE(reader->copy().entries.size(), kPageEntriesMax);
    for (const PageEntry& entry : reader->copy().entries) {
      ASSERT_LE(entry.weight_permille, kFullWeightPermille);
      ASSERT_LE(entry.state, static_cast<uint8_t>(PlannedState::kDrained));
    }
  }
  EXPECT_GT(taken, 1000u);
  EXPECT_GT(refused, 1000u);
  EXPECT_EQ(reader->refusals(), refused);
}

}  // namespace
}  // namespace r2cc::plan
