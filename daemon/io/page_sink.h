// The interface to the page that all jobs of this node read.
#ifndef R2CC_DAEMON_IO_PAGE_SINK_H_
#define R2CC_DAEMON_IO_PAGE_SINK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/clock.h"
#include "plan/model.h"
#include "plan/page/page.h"

namespace r2cc::daemon {

// The core's thread only.
class PageSink {
 public:
  virtual ~PageSink() = default;
  // Publishes a whole plan, of `own_node`'s daemon. On failure the last good one stays, and one line states why.
  virtual absl::Status Publish(const plan::Plan& plan, const std::string& own_node, Nanos now) = 0;
  // NICs of the published plan that old plugins do not find, as their names have the hashes of others.
  virtual std::vector<plan::PageConflict> conflicts() const = 0;
  // Shows the readers that the daemon runs.
  virtual void Heartbeat(Nanos now) = 0;
  // Shows the readers that it ends on purpose, to be upgraded or moved; nothing follows.
  virtual void EndOnPurpose(Nanos now) = 0;
};

// The real page.
class SharedPage final : public PageSink {
 public:
  static absl::StatusOr<std::unique_ptr<SharedPage>> Create() {
    std::string error;
    auto writer = plan::PageWriter::Create(&error);
    if (writer == nullptr) return absl::InternalError(error);
    return std::unique_ptr<SharedPage>(new SharedPage(std::move(writer)));
  }

  absl::Status Publish(const plan::Plan& plan, const std::string& own_node, Nanos now) override {
    std::string error;
    return writer_->Publish(plan, now, &error, own_node) ? absl::OkStatus() : absl::InternalError(error);
  }
  std::vector<plan::PageConflict> conflicts() const override { return writer_->conflicts(); }
  void Heartbeat(Nanos now) override { writer_->Heartbeat(now); }
  void EndOnPurpose(Nanos now) override { writer_->EndOnPurpose(now); }

  // To hand to jobs; owned by the page.
  int fd() const { return writer_->fd(); }

 private:
  explicit SharedPage(std::unique_ptr<plan::PageWriter> writer) : writer_(std::move(writer)) {}
  const std::unique_ptr<plan::PageWriter> writer_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_PAGE_SINK_H_
