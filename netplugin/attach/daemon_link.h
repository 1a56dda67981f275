// Connects the transport to the node's daemon. It never waits for the daemon and never needs it.
#ifndef R2CC_NETPLUGIN_ATTACH_DAEMON_LINK_H_
#define R2CC_NETPLUGIN_ATTACH_DAEMON_LINK_H_

#include <cstdint>

#include "base/core/clock.h"
#include "plan/page/attach.h"
#include "plan/page/page.h"
#include "plan/page/ring.h"

namespace r2cc::net {

// I/O thread only.
class DaemonLink {
 public:
  virtual ~DaemonLink() = default;

  // Readable when Poll() has something to do; -1: not connected. May change with each Poll().
  virtual int fd() const = 0;

  // Does what is due at `now`; never blocks. Call it when fd() is readable, and also a few times a second.
  virtual void Poll(Nanos now) = 0;

  // True from the daemon's acceptance to the loss of the connection.
  virtual bool attached() const = 0;

  // How often a daemon has accepted this process. When it grows, the daemon knows nothing yet of this process and needs its reports.
  virtual uint64_t attach_count() const = 0;

  // The last acceptance: the node's name and its names for the rails (at least as many as the request had, empty if not matched). All zero
  // before the first one; it stays when the daemon goes.
  virtual const plan::AttachReply& reply() const = 0;

  // The plan in force; null if there is none, or if its daemon has been silent for longer than kPageStaleAfter. Valid until the next
  // Poll().
  virtual const plan::PageCopy* page(Nanos now) const = 0;

  // Changes whenever page() may differ from the last Poll(), also if a plan went stale or came back.
  virtual uint64_t page_generation() const = 0;

  // Reports evidence to the daemon. Without a daemon it is dropped, but the last numbered records (plan::IsNumbered) wait for the next
  // daemon.
  virtual void Report(const plan::EvidenceRecord& record) = 0;
};

// For R2CC_ATTACH=none.
class NoDaemon final : public DaemonLink {
 public:
  int fd() const override { return -1; }
  void Poll(Nanos) override {}
  bool attached() const override { return false; }
  uint64_t attach_count() const override { return 0; }
  const plan::AttachReply& reply() const override { return reply_; }
  const plan::PageCopy* page(Nanos) const override { return nullptr; }
  uint64_t page_generation() const override { return 0; }
  void Report(const plan::EvidenceRecord&) override {}

 private:
  plan::AttachReply reply_{};
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_ATTACH_DAEMON_LINK_H_
