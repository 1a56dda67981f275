// A peer without a session: it counts what it is asked to do, for the tests of what drives one.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_FAKE_PEER_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_FAKE_PEER_H_

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "netplugin/transport/tcp/peer.h"

namespace r2cc::net {

struct FakeIo : Io {
  explicit FakeIo(const Clock* of, uint64_t after_bytes = 0) {
    clock = of;
    bulk_after_bytes = after_bytes;
  }
};

class FakePeer final : public Peer {
 public:
  explicit FakePeer(Io* io) : Peer(io), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    poller_.Add(event_.get(), EPOLLIN, [this](uint32_t) {
      uint64_t count = 0;
      if (read(event_.get(), &count, sizeof(count)) != sizeof(count)) return;
      ++events;
      MoveBytes(found_bytes);
    });
  }

  // Something arrives.
  void Arrive() const { eventfd_write(event_.get(), 1); }
  // With the turn.
  void MoveBytes(uint32_t bytes) { Count(bytes, bytes); }

  void RailState(uint16_t, bool) override {}
  void ApplyVerdicts() override {}
  bool Settle() override {
    ++settled;
    settled_with_crew = has_crew;
    return settle_more;
  }
  bool PublishFound() override {
    published += publishes_found;
    return publishes_found;
  }
  bool outstanding() const override { return is_outstanding; }
  bool idle() const override { return true; }
  bool over() const override { return is_over; }
  bool flushed() const override { return true; }
  void HalfClose() override {}
  void CloseFlows() override {}

  std::vector<uint64_t> posted;  // sizes, in order
  std::vector<bool> posted_in_jobs_turn, posted_with_crew;
  int events = 0, hots = 0, ticks = 0, settled = 0, published = 0, closed = 0, crews = 0;
  std::string unwatched;  // r: what the poller does not know of was read; w: it was watched again
  bool hot_moves = false, settle_more = false, is_outstanding = false, is_over = false, has_crew = false;
  bool publishes_found = false;    // as a receiver of small messages does
  bool counts_requests = false;    // as a sender does
  uint32_t found_bytes = 0;        // in messages that begin, by a look and by an event
  bool settled_with_crew = false;  // the last time

 protected:
  void Announce(uint64_t bytes) override {
    if (counts_requests) Count(bytes, bytes);
  }
  void Post(FlowId, void*, uint64_t bytes) override {
    posted.push_back(bytes);
    posted_in_jobs_turn.push_back(jobs_turn());
    posted_with_crew.push_back(has_crew);
  }
  bool Hot(FlowId) override {
    ++hots;
    if (hot_moves) MoveBytes(found_bytes);
    return hot_moves;
  }
  void Tick() override { ++ticks; }
  void CloseAll() override { ++closed; }
  void Crew(bool wanted) override {
    has_crew = wanted;
    ++crews;
  }
  void ReadUnwatched() override { unwatched += 'r'; }
  void WatchAll() override { unwatched += 'w'; }

 private:
  UniqueFd event_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_FAKE_PEER_H_
