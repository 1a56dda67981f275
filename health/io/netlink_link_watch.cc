#include "health/io/netlink_link_watch.h"

#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

namespace r2cc::health {
namespace {

constexpr Nanos kListWait = 2 * kNanosPerSecond;
constexpr Nanos kHousekeepingInterval = kNanosPerSecond;

std::string MacText(const std::array<uint8_t, 6>& mac) {
  if (std::all_of(mac.begin(), mac.end(), [](uint8_t byte) { return byte == 0; })) return "";
  char text[18];
  snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
  return text;
}

}  // namespace

LinkFact ToLinkFact(const NetEvent& event) {
  LinkFact fact;
  fact.interface = event.name;
  fact.ifindex = event.ifindex;
  fact.present = event.kind == NetEvent::Kind::kLink;
  fact.up = fact.present && event.admin_up && event.carrier_up;
  fact.mac = MacText(event.mac);
  fact.mtu = event.mtu;
  return fact;
}

NetlinkLinkWatch::~NetlinkLinkWatch() {
  loop_->Cancel(housekeeping_);
  loop_->Cancel(refresh_);
  Close();
}

absl::Status NetlinkLinkWatch::Start(Handler handler) {
  handler_ = std::move(handler);
  if (absl::Status opened = Open(); !opened.ok()) return opened;
  const Nanos deadline = loop_->Now() + kListWait;
  while (lists_ == 0) {
    const Nanos left = deadline - loop_->Now();
    if (left <= 0) {
      Close();
      return absl::DeadlineExceededError("the kernel did not list the network interfaces");
    }
    pollfd wait = {socket_->fd(), POLLIN, 0};
    // Woken once in a while even without news: Receive then repeats a list that the kernel refused.
    poll(&wait, 1, static_cast<int>(std::min(left, 100 * kNanosPerMs) / kNanosPerMs) + 1);
    Receive();
  }
  housekeeping_ = loop_->RunAfter(loop_->UntilNext(kHousekeepingInterval), [this] { Housekeep(); });
  return absl::OkStatus();
}

void NetlinkLinkWatch::Refresh() {
  if (!handler_) return;
  loop_->Cancel(refresh_);
  refresh_ = loop_->RunAfter(0, [this] { Reopen(); });
}

absl::Status NetlinkLinkWatch::Open() {
  std::string error;
  socket_ = NetlinkSocket::Open(&error);
  if (socket_ == nullptr) return absl::UnavailableError(error);
  listing_ = false;
  absl::Status added = loop_->AddFd(socket_->fd(), EPOLLIN, [this](uint32_t) { Receive(); });
  if (!added.ok()) socket_ = nullptr;
  return added;
}

void NetlinkLinkWatch::Close() {
  if (socket_ == nullptr) return;
  loop_->RemoveFd(socket_->fd());
  socket_ = nullptr;
}

// A fresh socket begins with a list of everything, so no event is lost between the old one and the new one. One that cannot be opened
// is tried again by Housekeep.
void NetlinkLinkWatch::Reopen() {
  Close();
  if (Open().ok()) Receive();
}

void NetlinkLinkWatch::Housekeep() {
  housekeeping_ = loop_->RunAfter(loop_->UntilNext(kHousekeepingInterval), [this] { Housekeep(); });
  if (socket_ == nullptr) {
    Reopen();
  } else {
    Receive();
  }
}

void NetlinkLinkWatch::Receive() {
  std::vector<NetEvent> events;
  socket_->Receive(&events);
  std::vector<LinkFact> changes;
  for (const NetEvent& event : events) {
    if (event.kind == NetEvent::Kind::kResync) {
      listing_ = true;
      list_.clear();
    } else if (event.kind == NetEvent::Kind::kDumpDone) {
      if (!listing_) continue;
      listing_ = false;
      ++lists_;
      if (!changes.empty()) handler_(std::exchange(changes, {}), false);
      handler_(std::exchange(list_, {}), true);
    } else {
      Take(event, &changes);
    }
  }
  if (!changes.empty()) handler_(changes, false);
}

// Changes are reported at once even while a list is coming in: a link that went down does not wait.
void NetlinkLinkWatch::Take(const NetEvent& event, std::vector<LinkFact>* changes) {
  const bool present = event.kind == NetEvent::Kind::kLink;
  if (!present && event.kind != NetEvent::Kind::kLinkRemoved) return;
  const size_t first = changes->size();
  std::string& name = name_of_[event.ifindex];
  if (!name.empty() && name != event.name) {
    LinkFact old;
    old.interface = name;
    old.ifindex = event.ifindex;
    old.present = false;
    changes->push_back(old);
  }
  name = event.name;
  if (!present) name_of_.erase(event.ifindex);
  changes->push_back(ToLinkFact(event));
  if (listing_) list_.insert(list_.end(), changes->begin() + static_cast<std::ptrdiff_t>(first), changes->end());
}

}  // namespace r2cc::health
