// Fakes a daemon for tests.
#ifndef R2CC_NETPLUGIN_ATTACH_FAKE_DAEMON_LINK_H_
#define R2CC_NETPLUGIN_ATTACH_FAKE_DAEMON_LINK_H_

#include <optional>
#include <vector>

#include "netplugin/attach/daemon_link.h"

namespace r2cc::net {

class FakeDaemonLink final : public DaemonLink {
 public:
  int fd() const override { return -1; }
  void Poll(Nanos) override {}
  bool attached() const override { return attached_; }
  uint64_t attach_count() const override { return attach_count_; }
  const plan::AttachReply& reply() const override { return reply_; }
  const plan::PageCopy* page(Nanos) const override { return page_ ? &*page_ : nullptr; }
  uint64_t page_generation() const override { return page_generation_; }
  void Report(const plan::EvidenceRecord& record) override { reported.push_back(record); }

  // As if a daemon had accepted this process.
  void Attach(const plan::AttachReply& reply) {
    reply_ = reply;
    attached_ = true;
    ++attach_count_;
  }
  void Publish(const plan::Plan& plan) {
    page_ = plan::PageCopyOf(plan);
    ++page_generation_;
  }
  // As if the daemon had been silent for too long.
  void LosePage() {
    page_.reset();
    ++page_generation_;
  }
  void Detach() { attached_ = false; }

  std::vector<plan::EvidenceRecord> reported;

 private:
  bool attached_ = false;
  uint64_t attach_count_ = 0;
  uint64_t page_generation_ = 0;
  plan::AttachReply reply_{};
  std::optional<plan::PageCopy> page_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_ATTACH_FAKE_DAEMON_LINK_H_
