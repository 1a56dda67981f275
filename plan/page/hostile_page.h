// A page whose bytes a test writes.
#ifndef R2CC_PLAN_PAGE_HOSTILE_PAGE_H_
#define R2CC_PLAN_PAGE_HOSTILE_PAGE_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "base/core/hash.h"
#include "plan/page/page.h"
#include "plan/page/page_layout.h"

namespace r2cc::plan {

inline Plan PlanOf(uint64_t counter, int nics, uint16_t weight = 1000, PlannedState state = PlannedState::kHealthy) {
  Plan plan;
  plan.epoch = {1000, counter};
  for (int i = 0; i < nics; ++i) plan.nics.push_back({"node" + std::to_string(i / 8), "nic" + std::to_string(i % 8), state, weight});
  return plan;
}

// A page made by somebody who knows the layout and means no good: keeps its own writable mapping.
class HostilePage {
 public:
  explicit HostilePage(size_t bytes = sizeof(PageLayout)) : fd_(memfd_create("hostile", MFD_ALLOW_SEALING | MFD_CLOEXEC)), bytes_(bytes) {
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(bytes)), 0);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    EXPECT_NE(memory, MAP_FAILED);
    page_ = static_cast<PageLayout*>(memory);
    if (bytes >= 64) {
      page_->magic = kPageMagic;
      page_->version = kPageVersion;
    }
  }
  ~HostilePage() {
    munmap(page_, bytes_);
    close(fd_);
  }
  void Seal(int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) { EXPECT_EQ(fcntl(fd_, F_ADD_SEALS, seals), 0); }
  // Writes a sound body.
  void Fill(const PageCopy& copy) {
    page_->body[kPageBodyIncarnation] = copy.epoch.incarnation;
    page_->body[kPageBodyEpochCounter] = copy.epoch.counter;
    page_->body[kPageBodyEntryCount] = copy.entries.size();
    if (!copy.entries.empty()) std::memcpy(&page_->body[kPageBodyEntries], copy.entries.data(), copy.entries.size() * sizeof(PageEntry));
    Sign();
  }
  void Sign() {
    page_->checksum = Crc32c(page_->body, (kPageBodyEntries + page_->body[kPageBodyEntryCount] * kPageEntryWords) * 8);
    page_->sequence += 2;
  }
  std::unique_ptr<PageReader> Open(std::string* error) { return PageReader::Open(dup(fd_), error); }
  PageLayout* operator->() { return page_; }
  int fd() const { return fd_; }

 private:
  int fd_;
  size_t bytes_;
  PageLayout* page_;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PAGE_HOSTILE_PAGE_H_
