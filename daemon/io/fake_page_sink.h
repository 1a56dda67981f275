// A page that a test looks into.
#ifndef R2CC_DAEMON_IO_FAKE_PAGE_SINK_H_
#define R2CC_DAEMON_IO_FAKE_PAGE_SINK_H_

#include <optional>
#include <string>
#include <vector>

#include "daemon/io/page_sink.h"

namespace r2cc::daemon {

class FakePageSink final : public PageSink {
 public:
  absl::Status Publish(const plan::Plan& plan, const std::string& own_node, Nanos now) override {
    if (!failure_.ok()) return failure_;
    conflicts_.clear();
    (void)plan::PageCopyOf(plan, {}, own_node, &conflicts_);
    plans_.push_back(plan);
    heartbeat_ = now;
    return absl::OkStatus();
  }
  std::vector<plan::PageConflict> conflicts() const override { return conflicts_; }
  void Heartbeat(Nanos now) override { heartbeat_ = now; }
  void EndOnPurpose(Nanos now) override { ended_at_ = now; }

  void Fail(absl::Status status) { failure_ = std::move(status); }
  const std::vector<plan::Plan>& plans() const { return plans_; }
  Nanos heartbeat() const { return heartbeat_; }
  Nanos ended_at() const { return ended_at_; }  // 0: it has not ended on purpose

  // The newest entry of NODE/NIC; nothing if the page has none.
  std::optional<plan::PlannedNic> Find(const std::string& node, const std::string& nic) const {
    if (plans_.empty()) return std::nullopt;
    for (const auto& planned : plans_.back().nics)
      if (planned.node == node && planned.nic == nic) return planned;
    return std::nullopt;
  }

 private:
  std::vector<plan::Plan> plans_;
  std::vector<plan::PageConflict> conflicts_;
  Nanos heartbeat_ = 0;
  Nanos ended_at_ = 0;
  absl::Status failure_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_FAKE_PAGE_SINK_H_
