// Finds the channel that has stopped answering, and the link that has stopped carrying data, while the peer answers elsewhere. Pure.
//
// A channel becomes suspect when it leaves a ping unanswered. Its silence is measured on one other channel, the witness: from the witness's
// first answer to a ping that was sent no earlier than the unanswered one, to the last frame received on the witness. In that time the peer
// was awake, and only the suspect channel brought nothing. A peer that is stopped or busy answers nowhere: that time counts against no
// channel, and the session waits without limit.
//
// A link becomes suspect when data on it stays unacknowledged (see LinkProgress). The same rule holds. The link's own control channel is
// also a witness then: its connection may take another path through the fabric than the connections of the data.
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

  // Anything arrived on the channel.
  void Received(ChannelId channel, Nanos now);
  // The peer's kernel takes bytes on the channel's link, so a ping may wait behind them. That excuses the channel for kExcuseSilences times
  // the silence. It is no evidence that the peer's process is awake, and so it counts against no other channel.
  void Delivered(ChannelId channel, Nanos now);
  // Data of the channel's link has been unacknowledged since `since`; 0: none is. `confirmed`: the data left this host and was sent again.
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
  // `outstanding`: some request waits for this peer. Without one nothing is watched.
  Verdict Tick(bool outstanding, Nanos now);

  // Since when some request waited at each tick; 0: at the last tick none did.
  Nanos watching_since() const { return watching_since_; }

  // When anything was received last, on any channel, including channels that are gone.
  Nanos last_received() const { return last_received_; }

  // No channel has received anything for the whole of the silence.
  bool AllSilent(Nanos now) const;

  // The channel is up, and a ping on it has had no answer for the whole of the silence.
  bool Silent(ChannelId channel, Nanos now) const;

 private:
  struct Suspicion {
    Nanos since = 0;            // send time of the oldest unanswered ping, or of the oldest unacknowledged data; 0: none
    Nanos witnessed_since = 0;  // when a witness first answered a ping that was sent no earlier; 0: none has
  };
  struct State {
    Nanos last_received = 0;
    Nanos answering_since = 0;  // since then no long gap between two arrivals
    Suspicion ping;
    Suspicion data;
    bool data_confirmed = false;
    Nanos pinged = 0;  // send time of the latest ping
    std::map<uint64_t, Nanos> in_flight;
  };
  bool Suspected(const State& state, Nanos now) const {
    return state.ping.since != 0 || (state.data.since != 0 && now - state.data.since >= silence_ / 4);
  }
  // Some channel other than `except` has answered for the whole of the silence since the suspicion began.
  bool Witnessed(const Suspicion& suspicion, const ChannelId* except) const;

  // How much later than the witness's first answer its latest must be. The ping waits for a quarter of the silence before that.
  Nanos WitnessedFor() const { return silence_ * 3 / 4; }

  const Nanos silence_;
  uint64_t next_number_ = 1;
  Nanos watching_since_ = 0;
  Nanos last_received_ = 0;
  std::map<ChannelId, State> channels_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FAILURE_DETECTOR_H_
