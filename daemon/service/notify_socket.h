// The service manager's socket, as NOTIFY_SOCKET names it.
#ifndef R2CC_DAEMON_SERVICE_NOTIFY_SOCKET_H_
#define R2CC_DAEMON_SERVICE_NOTIFY_SOCKET_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/service/notify_sink.h"

namespace r2cc::daemon {

class NotifySocket final : public NotifySink {
 public:
  // `address`: an absolute path, or an abstract name behind "@". Nothing need listen there yet. INVALID_ARGUMENT: it is neither.
  static absl::StatusOr<std::unique_ptr<NotifySocket>> Open(const std::string& address);
  ~NotifySocket() override;
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  bool Notify(const std::string& state) override;
  bool Keep(const std::string& name, int fd) override;

 private:
  NotifySocket(int fd, const sockaddr_un& address, socklen_t length) : fd_(fd), address_(address), length_(length) {}

  const int fd_;
  const sockaddr_un address_;
  const socklen_t length_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_SERVICE_NOTIFY_SOCKET_H_
