#include "netplugin/transport/control_plane.h"

#include <poll.h>
#include <sys/epoll.h>

#include <cstring>
#include <utility>

#include "netplugin/flow/mutant.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/transport/record.h"

namespace r2cc::net {
void ControlPlane::AwaitDaemon() {
  const Nanos until = host_->Now() + tuning::kAttachPatience;
  while (host_->Now() < until) {
    pollfd descriptor{-1, POLLIN, 0};
    {
      const MutexLock lock(daemon_mutex_);
      daemon_->Poll(host_->Now());
      if (daemon_->attached()) break;
      descriptor.fd = daemon_->fd();
    }
    poll(&descriptor, 1, static_cast<int>(tuning::kLookSoon / kNanosPerMs));
  }
  RefreshIdentity();
}

void ControlPlane::Start(Listener listener) {
  listener_ = std::move(listener);
  started_ = host_->Now();
  if (link_events_->fd() >= 0) poller_->Add(link_events_->fd(), EPOLLIN, [this](uint32_t) { changed_ = true; });
}

bool ControlPlane::RefreshIdentity() {
  plan::AttachReply reply;
  {
    const MutexLock lock(daemon_mutex_);
    if (!daemon_->attached()) return false;
    reply = daemon_->reply();
  }
  bool changed = std::exchange(host_->node, reply.node) != reply.node;
  for (size_t i = 0; i < host_->rails.size() && i < plan::kAttachRailsMax; ++i) {
    LocalRail& rail = host_->rails[i];
    const std::string before = rail.page_name();
    rail.matched = reply.nics[i][0] != '\0' && !IsActive(Mutant::kNamesUnheeded);
    rail.nic = rail.matched ? reply.nics[i] : rail.name;
    changed |= rail.page_name() != before;
  }
  host_->UpdateNames();
  return changed;
}

void ControlPlane::Poll(Nanos now) {
  if (!changed_ && now - polled_ < tuning::kEngineLookEvery) return;
  changed_ = false;
  polled_ = now;

  std::vector<RailLinkEvent> changes;
  link_events_->Poll(&changes);
  const std::vector<RailLinkEvent> events = link_settle_.Take(changes, now);
  if (!events.empty()) listener_.exclusively([&] { LinkEventsCame(events); });
  LoseRails(now);
  PollDaemon(now);
  if (now - totals_reported_ >= tuning::kReportEvery) ReportTotals(now);
}

void ControlPlane::LinkEventsCame(const std::vector<RailLinkEvent>& events) {
  for (const RailLinkEvent& event : events) {
    const auto rail = static_cast<uint16_t>(event.rail);
    if (event.up && IsActive(Mutant::kRepairUnheeded)) continue;
    if (event.up && !event.address.empty()) listener_.address(rail, event.address);
    RailEvent(rail, event.up, event.reason);
  }
}

void ControlPlane::PollDaemon(Nanos now) {
  int fd;
  uint64_t attach_count, generation;
  std::shared_ptr<const PageView> view;
  {
    const MutexLock lock(daemon_mutex_);
    daemon_->Poll(now);
    fd = daemon_->fd();
    attach_count = daemon_->attach_count();
    generation = daemon_->page_generation();
    if (generation != page_generation_) {
      const plan::PageCopy* page = daemon_->page(now);
      view = page == nullptr ? std::make_shared<PageView>() : std::make_shared<PageView>(*page, host_->job);
    }
  }
  if (fd != daemon_fd_) {
    if (daemon_token_ != 0) poller_->Remove(daemon_token_, daemon_fd_);
    daemon_fd_ = fd;
    daemon_token_ = fd < 0 ? 0 : poller_->Add(fd, EPOLLIN, [this](uint32_t) { changed_ = true; });
  }
  if (attach_count != attach_count_) {
    attach_count_ = attach_count;
    listener_.exclusively([this] {
      const bool changed = RefreshIdentity();
      listener_.attached();
      if (changed) listener_.renamed();
    });
    Report(RunRecord(*host_, started_));
    ReportTotals(now);
  }
  if (generation != page_generation_ && !(page_generation_ > 0 && IsActive(Mutant::kPageFrozen))) {
    page_generation_ = generation;
    std::shared_ptr<const PageView> former = view;
    {
      const MutexLock lock(page_mutex_);
      page_.swap(former);
    }
    host_->tally.Judge(*view, now);
    listener_.exclusively([this] { listener_.verdicts(); });
  }
}

void ControlPlane::RailEvent(uint16_t index, bool up, const char* reason) {
  LocalRail& rail = host_->rails[index];
  if (rail.lost_on_purpose) return;
  rail.up = up;
  host_->log(LogLevel::kInfo, "R2CC: rail " + rail.name + (up ? " is up" : std::string(" is down: ") + reason));
  listener_.rail_state(index, up);
}

void ControlPlane::LoseRails(Nanos now) {
  std::vector<FailRail> due;
  std::erase_if(fail_rails_, [&](const FailRail& fail) {
    if (now - started_ < fail.after_ms * kNanosPerMs) return false;
    due.push_back(fail);
    return true;
  });
  if (due.empty()) return;
  listener_.exclusively([&] {
    for (const FailRail& fail : due)
      for (uint16_t i = 0; i < host_->rails.size(); ++i) {
        if (host_->rails[i].name != fail.rail) continue;
        RailEvent(i, false, "R2CC_FAIL_RAILS");
        host_->rails[i].lost_on_purpose = true;
      }
  });
}

void ControlPlane::ReportPeer(const std::string& node) {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kFlowOpened);
  record.time_ns = host_->Now();
  CopyText(node, record.peer_node, sizeof(record.peer_node));
  Report(record);
}

void ControlPlane::ReportEnding() {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kEnding);
  record.time_ns = host_->Now();
  Report(record);
}

void ControlPlane::ReportTotals(Nanos now) {
  totals_reported_ = now;
  for (size_t i = 0; i < host_->rails.size(); ++i) {
    const LocalRail& rail = host_->rails[i];
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRailTotals);
    record.time_ns = now;
    record.local_rail = static_cast<uint32_t>(i);
    record.bytes = rail.sent_bytes.value();
    record.received_bytes = rail.received_bytes.value();
    record.replayed_bytes = rail.replayed_bytes.value();
    Report(record);
  }
}

}  // namespace r2cc::net
