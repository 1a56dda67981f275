// The attach server on a SOCK_SEQPACKET Unix socket.
#ifndef R2CC_DAEMON_IO_SOCKET_ATTACH_SERVER_H_
#define R2CC_DAEMON_IO_SOCKET_ATTACH_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/core/token_bucket.h"
#include "base/fd_executor.h"
#include "daemon/core/attach_access.h"
#include "daemon/io/attach_server.h"
#include "daemon/io/attach_users.h"
#include "daemon/io/file_id.h"

namespace r2cc::daemon {

// Nothing that a job does blocks it or costs more than a bounded turn.
class SocketAttachServer final : public AttachServer {
 public:
  // A connection that sends nothing for this time is closed.
  static constexpr Nanos kRequestDeadline = 5 * kNanosPerSecond;
  // Records taken from one ring in one turn of the loop.
  static constexpr int kRecordsPerTurn = 256;
  // Packets a second of one connection. A process rings when it has written evidence: some times a second, and some hundred when all its
  // rails fail. One that sends more is not read for kPacketPause, while its packets wait in the socket.
  static constexpr int kPacketsPerSecond = 1000;
  static constexpr int kPacketsBurst = 1000;
  static constexpr Nanos kPacketPause = 20 * kNanosPerMs;

  // `page_fd` stays the caller's. `loop` outlives the server.
  SocketAttachServer(FdExecutor* loop, std::string path, int page_fd, AttachAccess access);
  ~SocketAttachServer() override;

  // Before Start(): takes the socket on which the former run listened, with the jobs in its queue. Owns `fd`, and closes it if it is not
  // the one that is at the path now (it was made again, or the path is another). `kept_name`: its name in that run.
  void Adopt(int fd, const std::string& kept_name);
  // After Start(): the listening socket, still the server's, and a name by which the next run recognises whether it is the one at the path.
  int listen_fd() const { return listen_fd_; }
  std::string kept_name() const;
  // The socket at the path is the one that this server listens on.
  bool IsAtPath() const { return FileIdAt(path_) == at_path_; }
  // Makes the socket at the path again. Jobs in the queue of the old one are accepted first, and attached jobs stay.
  absl::Status MakeAgain();
  // The service manager keeps it for the next run: Stop() leaves it at the path.
  void LeaveSocket() { leave_socket_ = true; }

  // Listens at the path (mode 0666: `access` decides), in place of a socket that a dead daemon left there.
  absl::Status Start(Callbacks callbacks) override;
  void RingPageDoorbell() override;
  void DrainRings() override;
  void SetAccess(const AttachAccess& access) override { access_ = access; }
  // In the socket's directory, where the file stays for the next run.
  void OfferRails(const RailsFile& rails) override;
  // Closes every connection, and removes the socket unless it is to be left. The jobs go on, and come back to the next daemon.
  void Stop() override;
  uint64_t refused() const override { return users_.refused(); }
  // Connections that count against the limits.
  size_t places() const { return users_.places(); }

 private:
  struct Connection {
    int fd = -1;
    bool attached = false;
    uint32_t version = 0;  // that it speaks; 0: not known yet
    int32_t pid = 0;       // 0: not to be seen from here
    uint32_t uid = 0;
    std::string share;  // of attach_users.h; once it is attached
    bool allowed = false;
    TimerId deadline = 0;
    std::unique_ptr<plan::EvidenceRingReader> ring;
    bool draining = false;  // a further turn is posted
    TokenBucket packets{kPacketsPerSecond, kPacketsBurst};
    bool paused = false;  // it sent more than that
  };

  absl::Status Listen();
  void OnAccept();
  void PauseListening(const char* why);
  void MakeRoom();
  void OnReadable(JobId id);
  void Pause(JobId id);
  void OnRequest(JobId id, const plan::AttachRequest& request, size_t bytes);
  // False if the ring holds more than this turn may take.
  bool Drain(JobId id);
  void DrainOn(JobId id);
  void End(JobId id);
  void Refuse(JobId id, plan::AttachStatus status, const std::string& reason);
  void LogRefused(uint32_t uid, int32_t pid, const std::string& reason);
  static std::string ShareOf(int32_t pid, uint32_t uid);
  // Whether the process at the other end of `fd` may attach.
  bool Allows(int fd, uint32_t uid, uint32_t gid) const;

  FdExecutor* const loop_;
  const std::string path_;
  const int page_fd_;
  AttachAccess access_;
  RailsFile offered_;
  AttachUsers users_;
  Callbacks callbacks_;
  int listen_fd_ = -1;
  FileId at_path_;  // of the socket
  bool leave_socket_ = false;
  JobId next_id_ = 1;
  std::map<JobId, Connection> connections_;
  std::set<JobId> greeting_;  // of these, those that have not attached; the oldest first
  // False after Stop, for tasks that are still posted then.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_SOCKET_ATTACH_SERVER_H_
