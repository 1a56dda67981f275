// An attach server whose jobs are a test's function calls.
#ifndef R2CC_DAEMON_IO_FAKE_ATTACH_SERVER_H_
#define R2CC_DAEMON_IO_FAKE_ATTACH_SERVER_H_

#include <string>
#include <utility>
#include <vector>

#include "daemon/io/attach_server.h"

namespace r2cc::daemon {

class FakeAttachServer final : public AttachServer {
 public:
  absl::Status Start(Callbacks callbacks) override {
    callbacks_ = std::move(callbacks);
    return absl::OkStatus();
  }
  void RingPageDoorbell() override { ++doorbells_; }
  void DrainRings() override {}
  void SetAccess(const AttachAccess& access) override { access_ = access; }
  void OfferRails(const RailsFile& rails) override { offered_ = rails; }
  void Stop() override {}
  uint64_t refused() const override { return 0; }

  AttachDecision Attach(JobId id, int32_t pid, const plan::AttachRequest& request, uint32_t uid = 0, const std::string& share = "") {
    return callbacks_.on_attach(id, {pid, uid, false, share}, request);
  }
  void Deliver(JobId id, const std::vector<plan::EvidenceRecord>& records, uint64_t dropped = 0) {
    callbacks_.on_evidence(id, records, dropped);
  }
  void End(JobId id) { callbacks_.on_end(id); }
  const RailsFile& offered() const { return offered_; }
  int doorbells() const { return doorbells_; }
  const AttachAccess& access() const { return access_; }

 private:
  AttachAccess access_;
  RailsFile offered_;
  Callbacks callbacks_;
  int doorbells_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_FAKE_ATTACH_SERVER_H_
