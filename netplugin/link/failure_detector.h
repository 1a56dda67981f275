// Finds which channel has stopped answering, and which link has stopped carrying, while the peer answers elsewhere. Pure.
//
// A channel is suspected by a ping that it leaves unanswered. Its silence is the time between two things heard on one other channel: the
// first answer there to a ping that was sent no earlier, and the latest word. Then the peer was awake, and this channel alone brought
// nothing. A peer that is stopped or busy answers nowhere: that time counts against no channel, and is waited for without limit.
//
// A link is suspected by data that it leaves unacknowledged (see LinkProgress). The same rule holds, and there the link's own control
// channel is a witness too: its connection may take another path through the fabric than the connections of the data.
#ifndef R2CC_NETPLUGIN_LINK_FAILURE_DETECTOR_H_
#define R2CC_NETPLUGIN_LINK_FAILURE_DETECTOR_H_

#include <cstdint>
#include <map>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/link/action.h"

namespace r2cc::net {

class FailureDetector {
 public:
  explicit FailureDetector(Nanos silence) : silence_(silence) {}

  void Up(ChannelId channel, Nanos now);
  void Down(ChannelId channel);
  bool empty() const { return channels_.empty(); }

  // Anything at all arrived on the channel.
  void Heard(ChannelId channel, Nanos now);
  // The peer's kernel takes bytes on the channel's link, so a ping may wait behind them. That excuses the channel for kExcuseSilences times
  // the silence. Says nothing of the peer's process, and so nothing against other channels.
  void Delivered(ChannelId channel, Nanos now);
  // Data of the channel's link is unacknowledged since then; 0: none is. `confirmed`: it left this host and was sent again.
  void Unacknowledged(ChannelId channel, Nanos since, bool confirmed);
  // The answer to the ping with this number.
  void Pong(ChannelId channel, uint64_t number, Nanos now);

  struct Ping {
    ChannelId channel;
    uint64_t number;
  };
  struct Verdict {
    std::vector<Ping> pings;         // to send now
    std::vector<ChannelId> silent;   // to give up now
    std::vector<ChannelId> stalled;  // to give up now, because of their links' data
    bool peer_silent = false;        // no channel has answered for the whole of the silence
  };
  // `outstanding`: some request waits for this peer. Without one there is nothing to watch.
  Verdict Tick(bool outstanding, Nanos now);

  // At each tick since then some request waited; 0: at the last one none did.
  Nanos watching_since() const { return watching_since_; }

  // When anything was heard last, on channels too that are gone.
  Nanos heard() const { return heard_; }

  // No channel has been heard for the whole of the silence.
  bool AllSilent(Nanos now) const;

  // The channel is up, and a ping on it has been without an answer for the whole of the silence.
  bool Silent(ChannelId channel, Nanos now) const;

 private:
  struct Suspicion {
    Nanos since = 0;            // send time of the oldest ping, or data, without an answer since; 0: none
    Nanos witnessed_since = 0;  // a witness has answered a ping that was sent no earlier than that; 0: none has
  };
  struct State {
    Nanos heard = 0;
    Nanos answering_since = 0;  // since then no long gap between two things heard
    Suspicion ping;
    Suspicion data;
    bool data_confirmed = false;
    Nanos pinged = 0;  // send time of the latest ping
    std::map<uint64_t, Nanos> in_flight;
  };
  bool Suspected(const State& state, Nanos now) const {
    return state.ping.since != 0 || (state.data.since != 0 && now - state.data.since >= silence_ / 4);
  }
  // Some channel but `except` has answered for the whole of the silence since that began.
  bool Witnessed(const Suspicion& suspicion, const ChannelId* except) const;

  // How much later than its witness's first answer the latest must be. The ping waits for a quarter of the silence before.
  Nanos WitnessedFor() const { return silence_ * 3 / 4; }

  const Nanos silence_;
  uint64_t next_number_ = 1;
  Nanos watching_since_ = 0;
  Nanos heard_ = 0;
  std::map<ChannelId, State> channels_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FAILURE_DETECTOR_H_
