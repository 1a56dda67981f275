#include "daemon/io/socket_attach_server.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/version_range.h"
#include "base/log.h"
#include "daemon/io/offered_rails.h"
#include "daemon/io/process_origin.h"
#include "plan/page/text.h"

namespace r2cc::daemon {
namespace {

constexpr int kBacklog = 128;
// Accepted in one turn of the loop, and packets read from one job.
constexpr int kAcceptsPerTurn = 16;
constexpr int kPacketsPerTurn = 16;
// Before the number of the socket's file.
constexpr char kKeptPrefix[] = "attach-";
constexpr Nanos kAcceptPause = 200 * kNanosPerMs;

plan::AttachReply EmptyReply(plan::AttachStatus status) {
  plan::AttachReply reply{};
  reply.magic = plan::kAttachMagic;
  reply.version = plan::kAttachVersion;
  reply.status = static_cast<uint32_t>(status);
  return reply;
}

// One packet, with descriptors if there are any. Never blocks.
bool SendReply(int fd, const plan::AttachReply& reply, const std::vector<int>& descriptors) {
  iovec part{const_cast<plan::AttachReply*>(&reply), sizeof(reply)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(reply));
}

}  // namespace

SocketAttachServer::SocketAttachServer(FdExecutor* loop, std::string path, int page_fd, AttachAccess access)
    : loop_(loop), path_(std::move(path)), page_fd_(page_fd), access_(std::move(access)) {}

SocketAttachServer::~SocketAttachServer() { Stop(); }

std::string SocketAttachServer::kept_name() const {
  struct stat at_path {};
  return stat(path_.c_str(), &at_path) == 0 ? absl::StrCat(kKeptPrefix, at_path.st_ino) : "";
}

void SocketAttachServer::Adopt(int fd, const std::string& kept_name) {
  int type = 0, listens = 0;
  sockaddr_un address{};
  socklen_t type_bytes = sizeof(type), listens_bytes = sizeof(listens), address_bytes = sizeof(address) - 1;
  const bool ours = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) == 0 && type == SOCK_SEQPACKET &&
                    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_bytes) == 0 && listens != 0 &&
                    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &address_bytes) == 0 && address.sun_family == AF_UNIX &&
                    path_ == address.sun_path && kept_name == this->kept_name();
  if (!ours || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
    close(fd);
  else
    listen_fd_ = fd;
  at_path_ = FileIdAt(path_);
}

absl::Status SocketAttachServer::Start(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  if (listen_fd_ < 0)
    if (absl::Status status = Listen(); !status.ok()) return status;
  return loop_->AddFd(listen_fd_, EPOLLIN, [this](uint32_t) { OnAccept(); });
}

absl::Status SocketAttachServer::Listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.size() >= sizeof(address.sun_path))
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": longer than the ", sizeof(address.sun_path) - 1, " bytes of a socket's path; choose a shorter --run_dir"));
  memcpy(address.sun_path, path_.data(), path_.size());
  listen_fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listen_fd_ < 0) return absl::ErrnoToStatus(errno, "cannot make a socket");
  unlink(path_.c_str());
  if (bind(listen_fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 || chmod(path_.c_str(), 0666) != 0 ||
      listen(listen_fd_, kBacklog) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen on ", path_));
  at_path_ = FileIdAt(path_);
  return absl::OkStatus();
}

void SocketAttachServer::OfferRails(const RailsFile& rails) {
  offered_ = rails;
  const size_t slash = path_.rfind('/');
  const absl::Status status = daemon::OfferRails(slash == std::string::npos ? "." : path_.substr(0, slash), rails);
  if (!status.ok())
    LogWarning("jobs without R2CC_RAILS take the rails that they would have without r2ccd", {{"reason", std::string(status.message())}});
}

absl::Status SocketAttachServer::MakeAgain() {
  OfferRails(RailsFile(offered_));
  const int old = listen_fd_;
  if (absl::Status status = Listen(); !status.ok()) {
    // The old one stays: nobody finds it any more, and the next try replaces it.
    if (listen_fd_ != old && listen_fd_ >= 0) close(listen_fd_);
    listen_fd_ = old;
    return status;
  }
  const int fresh = std::exchange(listen_fd_, old);
  OnAccept();
  loop_->RemoveFd(old);
  close(old);
  listen_fd_ = fresh;
  return loop_->AddFd(listen_fd_, EPOLLIN, [this](uint32_t) { OnAccept(); });
}

void SocketAttachServer::OnAccept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) return PauseListening(strerror(errno));
    if (fd < 0) return;
    MakeRoom();
    const JobId id = next_id_++;
    ucred peer{};
    socklen_t bytes = sizeof(peer);
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
    const bool room = users_.Connect(peer.uid);
    if (!room || !loop_->AddFd(fd, EPOLLIN, [this, id](uint32_t) { OnReadable(id); }).ok()) {
      if (room) users_.Disconnect(peer.uid);
      LogRefused(peer.uid, peer.pid, absl::StrCat("too many connections, ", connections_.size(), " in all"));
      close(fd);
      continue;
    }
    Connection& connection = connections_[id];
    greeting_.insert(id);
    connection.fd = fd;
    connection.pid = peer.pid;
    connection.uid = peer.uid;
    connection.allowed = Allows(fd, peer.uid, peer.gid);
    connection.deadline = loop_->RunAfter(kRequestDeadline, [this, id] {
      Connection& silent = connections_.at(id);
      silent.deadline = 0;
      LogRefused(silent.uid, silent.pid, absl::StrCat("no request within ", kRequestDeadline / kNanosPerSecond, " s"));
      End(id);
    });
  }
}

void SocketAttachServer::MakeRoom() {
  if (greeting_.size() < AttachUsers::kGreetingsInAllMax) return;
  const JobId oldest = *greeting_.begin();
  const Connection& silent = connections_.at(oldest);
  LogRefused(silent.uid, silent.pid, absl::StrCat("it asks nothing, and ", greeting_.size(), " connections ask nothing"));
  End(oldest);
}

// The connection stays in the queue, so the loop would turn for nothing until there is room again.
void SocketAttachServer::PauseListening(const char* why) {
  LogWarning("jobs must wait to attach", {{"reason", why}});
  (void)loop_->ModifyFd(listen_fd_, 0);
  loop_->RunAfter(kAcceptPause, [this, alive = alive_] {
    if (*alive) (void)loop_->ModifyFd(listen_fd_, EPOLLIN);
  });
}

void SocketAttachServer::OnReadable(JobId id) {
  for (int i = 0; i < kPacketsPerTurn; ++i) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    if (connection.paused && i > 0) return;
    // Without room for control data the kernel drops descriptors that a job may send.
    plan::AttachRequest request;
    const ssize_t got = recv(connection.fd, &request, sizeof(request), MSG_DONTWAIT | MSG_TRUNC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return End(id);
    if (!connection.packets.Take(loop_->Now())) Pause(id);
    if (!connection.attached) {
      OnRequest(id, request, static_cast<size_t>(got));
    } else if (got == 1 && *reinterpret_cast<const char*>(&request) == plan::kDoorbellEvidence) {
      DrainOn(id);
    }
  }
}

// Its packets wait in the socket for a moment: a job that rings without end must not take the core.
void SocketAttachServer::Pause(JobId id) {
  Connection& connection = connections_.at(id);
  if (std::exchange(connection.paused, true)) return;
  (void)loop_->ModifyFd(connection.fd, 0);
  loop_->RunAfter(kPacketPause, [this, alive = alive_, id] {
    if (!*alive) return;
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    found->second.paused = false;
    (void)loop_->ModifyFd(found->second.fd, EPOLLIN);
  });
}

void SocketAttachServer::OnRequest(JobId id, const plan::AttachRequest& request, size_t bytes) {
  Connection& connection = connections_.at(id);
  const bool has_head = bytes >= offsetof(plan::AttachRequest, pid);
  if (!has_head || request.magic != plan::kAttachMagic)
    return Refuse(id, plan::AttachStatus::kRefused, "this is not an R2CC attach request");
  if (!plan::IsAttachVersion(request.version))
    return Refuse(id, plan::AttachStatus::kWrongVersion,
                  absl::StrCat("attach version ", request.version, ", this r2ccd uses ",
                               VersionRange(plan::kAttachVersionLeast, plan::kAttachVersion), ": upgrade r2ccd or the plugin"));
  connection.version = request.version;
  if (bytes != plan::AttachRequestBytes(request.version) || !plan::Valid(request))
    return Refuse(id, plan::AttachStatus::kRefused, "the attach request is garbled");

  if (!connection.allowed)
    return Refuse(id, plan::AttachStatus::kRefused,
                  absl::StrCat("uid ", connection.uid, " may not attach: see attach in r2ccd's configuration"));
  std::string error;
  auto ring = plan::EvidenceRingReader::Create(&error);
  if (ring == nullptr) return Refuse(id, plan::AttachStatus::kRefused, absl::StrCat("no evidence ring: ", error));
  std::string share = ShareOf(connection.pid, connection.uid);
  if (const std::string why = users_.WhyNotAttach(share); !why.empty()) return Refuse(id, plan::AttachStatus::kRefused, why);
  const bool claimed = connection.pid <= 0;
  const JobProcess process{claimed ? request.pid : connection.pid, connection.uid, claimed, share};
  const AttachDecision decision = callbacks_.on_attach(id, process, request);
  if (!decision.refused.empty()) return Refuse(id, plan::AttachStatus::kRefused, decision.refused);

  plan::AttachReply reply = EmptyReply(plan::AttachStatus::kAccepted);
  reply.version = request.version;
  reply.rail_count = request.rail_count;
  plan::SetText(decision.node, reply.node);
  for (size_t i = 0; i < decision.nics.size() && i < plan::kAttachRailsMax; ++i) plan::SetText(decision.nics[i], reply.nics[i]);
  users_.Attach(connection.uid, share);
  connection.share = std::move(share);
  connection.attached = true;
  greeting_.erase(id);
  connection.ring = std::move(ring);
  if (connection.deadline != 0) loop_->Cancel(std::exchange(connection.deadline, 0));
  if (!SendReply(connection.fd, reply, {page_fd_, connection.ring->fd()})) End(id);
}

void SocketAttachServer::Refuse(JobId id, plan::AttachStatus status, const std::string& reason) {
  Connection& connection = connections_.at(id);
  LogRefused(connection.uid, connection.pid, reason);
  plan::AttachReply reply = EmptyReply(status);
  // A job that spoke one of our versions takes no other in the answer.
  if (status != plan::AttachStatus::kWrongVersion && connection.version != 0) reply.version = connection.version;
  plan::SetText(reason, reply.reason);
  SendReply(connection.fd, reply, {});
  End(id);
}

void SocketAttachServer::LogRefused(uint32_t uid, int32_t pid, const std::string& reason) {
  const auto suppressed = users_.Refuse(uid, loop_->Now());
  if (suppressed.has_value())
    LogWarning("a job was refused", {{"uid", uid}, {"pid", pid}, {"reason", reason}, {"suppressed_before", *suppressed}});
}

// The container's share, if it can be seen that the process is in one.
std::string SocketAttachServer::ShareOf(int32_t pid, uint32_t uid) {
  static const ProcessView own = ViewProcess(0);
  const std::string tenant = pid > 0 && IsContained(own, ViewProcess(pid)) ? TenantOf(CgroupOf(pid)) : "";
  return tenant.empty() ? AttachUsers::ShareOf(uid) : absl::StrCat("container ", tenant);
}

bool SocketAttachServer::Allows(int fd, uint32_t uid, uint32_t gid) const {
  if (access_.open() || uid == geteuid()) return true;
  std::vector<uint32_t> groups = PeerGroups(fd);
  groups.push_back(gid);
  return access_.Allows(uid, groups);
}

bool SocketAttachServer::Drain(JobId id) {
  Connection& connection = connections_.at(id);
  std::vector<plan::EvidenceRecord> records;
  // Records beyond a user's rate stay in the ring until the rings are looked at again.
  const int allowed = users_.TakeRecords(connection.share, kRecordsPerTurn, loop_->Now());
  const int taken = connection.ring->Take(allowed, &records);
  users_.GiveBack(connection.share, allowed - taken);
  callbacks_.on_evidence(id, records, connection.ring->dropped());
  return taken < kRecordsPerTurn;
}

void SocketAttachServer::DrainOn(JobId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || !found->second.attached || found->second.draining || Drain(id)) return;
  found->second.draining = true;
  loop_->Post([this, alive = alive_, id] {
    if (!*alive) return;
    const auto again = connections_.find(id);
    if (again == connections_.end()) return;
    again->second.draining = false;
    DrainOn(id);
  });
}

void SocketAttachServer::End(JobId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (connection.attached) {
    // The job's last records; no more than a full ring.
    for (uint32_t turn = 0; turn <= plan::kRingRecords / kRecordsPerTurn && !Drain(id); ++turn) continue;
    callbacks_.on_end(id);
  }
  if (connection.deadline != 0) loop_->Cancel(connection.deadline);
  if (connection.attached)
    users_.Leave(connection.share);
  else
    users_.Disconnect(connection.uid);
  loop_->RemoveFd(connection.fd);
  close(connection.fd);
  greeting_.erase(id);
  connections_.erase(found);
}

void SocketAttachServer::RingPageDoorbell() {
  for (const auto& [id, connection] : connections_)
    if (connection.attached) (void)send(connection.fd, &plan::kDoorbellPage, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void SocketAttachServer::DrainRings() {
  std::vector<JobId> ids;
  for (const auto& [id, connection] : connections_) ids.push_back(id);
  for (const JobId id : ids) DrainOn(id);
}

void SocketAttachServer::Stop() {
  if (!std::exchange(*alive_, false)) return;
  for (const auto& [id, connection] : connections_) {
    if (connection.deadline != 0) loop_->Cancel(connection.deadline);
    loop_->RemoveFd(connection.fd);
    close(connection.fd);
  }
  connections_.clear();
  greeting_.clear();
  if (listen_fd_ < 0) return;
  loop_->RemoveFd(listen_fd_);
  close(listen_fd_);
  if (!leave_socket_ && IsAtPath()) unlink(path_.c_str());
}

}  // namespace r2cc::daemon
