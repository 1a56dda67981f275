#include "netplugin/attach/attach_client.h"

#include <algorithm>
#include <utility>

#include "netplugin/attach/attach_packets.h"

namespace r2cc::net {
namespace {

constexpr Nanos kFirstDelay = 100 * kNanosPerMs;
constexpr Nanos kLongestDelay = 2 * kNanosPerSecond;
// A daemon answers in microseconds; one that hangs must not keep us from its successor.
constexpr Nanos kReplyTimeout = 2 * kNanosPerSecond;
// An attachment that lasted this long was a good one: the next trouble is news again, and tried against without delay.
constexpr Nanos kLasted = 10 * kNanosPerSecond;
// A refused page is looked at again after this, so that a hostile one cannot keep the I/O thread busy.
constexpr Nanos kRefusedPageDelay = 10 * kNanosPerMs;
constexpr int kPacketsPerPoll = 64;
// The limit of log lines that a daemon can cause with changing reasons.
constexpr size_t kLoggedMost = 16;

bool Counts(const std::unique_ptr<plan::PageReader>& page, Nanos now) {
  return page != nullptr && page->copy().epoch != Epoch{} && !page->Stale(now);
}

}  // namespace

AttachClient::AttachClient(std::string socket_path, plan::AttachRequest request, LogFn log)
    : path_(std::move(socket_path)),
      request_(request),
      newest_(request.version),
      log_(std::move(log)),
      // The processes of a node should not come all at once to a daemon that has just started.
      retry_(kFirstDelay, kLongestDelay, Retry::Jitter{request.process_id, 0}) {}

AttachClient::~AttachClient() {
  if (fd_ >= 0) ClosePacketSocket(fd_);
}

void AttachClient::LogOnce(LogLevel level, const std::string& line) {
  if (logged_.size() >= kLoggedMost || std::find(logged_.begin(), logged_.end(), line) != logged_.end()) return;
  logged_.push_back(line);
  if (log_) log_(level, "R2CC: " + line);
}

void AttachClient::Connect(Nanos now) {
  std::string error;
  retry_.Began();
  fd_ = ConnectPacketSocket(path_, &error);
  if (fd_ < 0) {
    // Once, whatever the cause turns into: that this job is on its own is one piece of news.
    if (!std::exchange(logged_unreachable_, true))
      LogOnce(LogLevel::kWarn, "no r2ccd at " + path_ + " (" + error +
                                   "): the job runs without it and tries again; set R2CC_ATTACH=none if no r2ccd is wanted");
    retry_.Failed(now);
    return;
  }
  since_ = now;
  if (SendPacket(fd_, &request_, plan::AttachRequestBytes(request_.version))) return;
  LogOnce(LogLevel::kWarn, "r2ccd at " + path_ + " accepts no request: trying again");
  Disconnect(now);
}

void AttachClient::Disconnect(Nanos now) {
  ClosePacketSocket(std::exchange(fd_, -1));
  ring_.reset();
  if (attached_ && now - since_ >= kLasted) {
    retry_.Worked();
    logged_.clear();
    logged_unreachable_ = false;
  }
  attached_ = false;
  // Who comes next may be newer.
  request_.version = newest_;
  retry_.Failed(now);
}

bool AttachClient::AskAgain(const std::vector<char>& packet, size_t bytes, Nanos now) {
  const uint32_t version = attached_ ? 0 : VersionToAskIn(packet.data(), bytes, request_.version);
  if (version == 0) return false;
  // Closed last, so that the next one has another number: whoever polls fd() would take it for the old one, which epoll forgets.
  const int refused = std::exchange(fd_, -1);
  request_.version = version;
  Connect(now);
  ClosePacketSocket(refused);
  return true;
}

std::string AttachClient::Accept(const plan::AttachReply& reply, ReceivedFds* fds, Nanos now) {
  std::string error;
  auto page = plan::PageReader::Open(fds->Take(0), &error);
  if (page == nullptr) return error;
  auto ring = plan::EvidenceRingWriter::Open(fds->Take(1), &error);
  if (ring == nullptr) return error;
  if (Counts(page_, now)) old_page_ = std::move(page_);
  page_ = std::move(page);
  ring_ = std::move(ring);
  next_refresh_ = now;
  reply_ = reply;
  attached_ = true;
  since_ = now;
  ++attach_count_;
  if (ring_->reads_numbers() && !kept_.all().empty()) {
    for (const plan::EvidenceRecord& record : kept_.all()) ring_->Put(record);
    RingDoorbell();
  }
  LogOnce(LogLevel::kInfo, "attached to r2ccd at " + path_ + " as a job of node " + reply.node);
  return "";
}

std::string AttachClient::Handle(const std::vector<char>& packet, size_t bytes, ReceivedFds* fds, Nanos now) {
  if (!attached_) {
    plan::AttachReply reply;
    const std::string refusal = CheckReply(packet.data(), bytes, fds->size(), &reply);
    return refusal.empty() ? Accept(reply, fds, now) : refusal;
  }
  // The only packet that may come is a doorbell, and the page is looked at in every Poll() anyway. Other single bytes are doorbells of
  // later releases.
  return bytes == 1 && fds->size() == 0 ? "" : "it broke the attach protocol";
}

void AttachClient::Receive(Nanos now) {
  std::vector<char> packet(sizeof(plan::AttachReply) + 1);
  for (int i = 0; i < kPacketsPerPoll; ++i) {
    ReceivedFds fds;
    size_t bytes = 0;
    const Received received = ReceivePacket(fd_, packet.data(), packet.size(), &bytes, &fds);
    if (received == Received::kNothing) break;
    std::string trouble;
    if (received == Received::kEnd) {
      if (attached_ && page_->ended()) return EndOnPurpose(now);
      trouble = attached_ ? "the connection ended; its verdicts count for two more seconds" : "it hung up on the request";
    } else if (received == Received::kTooLong && attached_) {
      trouble = "it broke the attach protocol";
    } else if (AskAgain(packet, bytes, now)) {
      // Its versions only get lower, so this ends.
      if (fd_ < 0) return;
      continue;
    } else {
      trouble = Handle(packet, bytes, &fds, now);
    }
    if (trouble.empty()) continue;
    LogOnce(LogLevel::kWarn, "r2ccd at " + path_ + ": " + trouble + "; trying again");
    Disconnect(now);
    return;
  }
  if (!attached_ && now - since_ > kReplyTimeout) {
    LogOnce(LogLevel::kWarn, "r2ccd at " + path_ + ": it does not answer; trying again");
    Disconnect(now);
  }
}

void AttachClient::EndOnPurpose(Nanos now) {
  LogOnce(LogLevel::kInfo, "r2ccd at " + path_ + " has ended on purpose; its verdicts stay valid for " +
                               std::to_string(plan::kPageEndLease / kNanosPerSecond) + " more seconds");
  Disconnect(now);
}

void AttachClient::RefreshPage(Nanos now) {
  if (page_ == nullptr || now < next_refresh_) return;
  if (page_->Refresh() == plan::PageReader::Read::kRefused) {
    LogOnce(LogLevel::kWarn, "r2ccd's plan page is garbled: keeping the last good plan");
    next_refresh_ = now + kRefusedPageDelay;
  }
}

void AttachClient::Poll(Nanos now) {
  if (fd_ < 0 && retry_.IsDue(now)) Connect(now);
  if (fd_ >= 0) Receive(now);
  RefreshPage(now);
  if (Counts(page_, now) || !Counts(old_page_, now)) old_page_.reset();
  const plan::PageReader* current = Counts(page_, now) ? page_.get() : old_page_.get();
  const std::pair<const plan::PageReader*, Epoch> seen{current, current == nullptr ? Epoch{} : current->copy().epoch};
  if (seen == seen_) return;
  seen_ = seen;
  ++page_generation_;
}

const plan::PageCopy* AttachClient::page(Nanos now) const {
  if (Counts(page_, now)) return &page_->copy();
  return Counts(old_page_, now) ? &old_page_->copy() : nullptr;
}

void AttachClient::Report(const plan::EvidenceRecord& record) {
  const plan::EvidenceRecord numbered = kept_.Keep(record);
  if (ring_ == nullptr) return;
  ring_->Put(numbered);
  RingDoorbell();
}

void AttachClient::RingDoorbell() {
  // A doorbell that does not fit is none: the daemon has unread ones already.
  SendPacket(fd_, &plan::kDoorbellEvidence, sizeof(plan::kDoorbellEvidence));
}

std::unique_ptr<DaemonLink> MakeDaemonLink(std::string socket_path, const plan::AttachRequest& request, LogFn log) {
  if (socket_path.empty()) return std::make_unique<NoDaemon>();
  return std::make_unique<AttachClient>(std::move(socket_path), request, std::move(log));
}

}  // namespace r2cc::net
