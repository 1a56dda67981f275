// Runs the plugin's end of the attach socket.
#ifndef R2CC_NETPLUGIN_ATTACH_ATTACH_CLIENT_H_
#define R2CC_NETPLUGIN_ATTACH_ATTACH_CLIENT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/retry.h"
#include "netplugin/attach/daemon_link.h"
#include "netplugin/attach/kept_records.h"
#include "netplugin/attach/packet_socket.h"
#include "netplugin/config/log.h"

namespace r2cc::net {

// Connects, and re-connects forever with back-off (100 ms, doubling to 2 s, with jitter). While the connection is lost, the last page is
// valid until its heartbeat is stale. A daemon that returns brings its own page and ring, and the old page stays valid until the new one
// has a plan. An older daemon is asked in its version, and after the next loss in the newest again. Each kind of trouble is logged once,
// and again only after an attachment that lasted.
//
// After fork() a child may close fd(), but must not destroy the client: that would also end the parent's connection.
class AttachClient final : public DaemonLink {
 public:
  AttachClient(std::string socket_path, plan::AttachRequest request, LogFn log);
  ~AttachClient() override;
  AttachClient(const AttachClient&) = delete;
  AttachClient& operator=(const AttachClient&) = delete;

  int fd() const override { return fd_; }
  void Poll(Nanos now) override;
  bool attached() const override { return attached_; }
  uint64_t attach_count() const override { return attach_count_; }
  const plan::AttachReply& reply() const override { return reply_; }
  const plan::PageCopy* page(Nanos now) const override;
  uint64_t page_generation() const override { return page_generation_; }
  void Report(const plan::EvidenceRecord& record) override;

 private:
  void Connect(Nanos now);
  void Receive(Nanos now);
  // Empty, or why the connection must end.
  std::string Handle(const std::vector<char>& packet, size_t bytes, ReceivedFds* fds, Nanos now);
  std::string Accept(const plan::AttachReply& reply, ReceivedFds* fds, Nanos now);
  void Disconnect(Nanos now);
  // The daemon ends for an upgrade, or moves.
  void EndOnPurpose(Nanos now);
  void RefreshPage(Nanos now);
  void RingDoorbell();
  void LogOnce(LogLevel level, const std::string& line);
  // True: the daemon is older, and was asked again in its own version.
  bool AskAgain(const std::vector<char>& packet, size_t bytes, Nanos now);

  const std::string path_;
  plan::AttachRequest request_;  // its version is the one to ask in
  const uint32_t newest_;        // the version that it was made for: each connection begins with it
  const LogFn log_;

  int fd_ = -1;
  bool attached_ = false;
  Nanos since_ = 0;  // of the connection, then of the attachment
  Retry retry_;
  std::vector<std::string> logged_;
  bool logged_unreachable_ = false;

  uint64_t attach_count_ = 0;
  plan::AttachReply reply_{};
  std::unique_ptr<plan::PageReader> page_;
  std::unique_ptr<plan::PageReader> old_page_;  // of the previous daemon, until page_ has a plan
  std::unique_ptr<plan::EvidenceRingWriter> ring_;
  KeptRecords kept_;
  Nanos next_refresh_ = 0;
  uint64_t page_generation_ = 0;
  // The page that page() returned when page_generation_ was last raised, and its epoch.
  std::pair<const plan::PageReader*, Epoch> seen_{nullptr, {}};
};

// An AttachClient, or NoDaemon if `socket_path` is empty (R2CC_ATTACH=none).
std::unique_ptr<DaemonLink> MakeDaemonLink(std::string socket_path, const plan::AttachRequest& request, LogFn log);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_ATTACH_ATTACH_CLIENT_H_
