// Silence: which channel has stopped answering while another still does. Pure.
//
// A channel is suspected by a ping that it leaves unanswered. Its silence is the time between two things heard on one other channel: the
// first answer there to a ping that was sent no earlier, and the latest word. Then the peer was awake, and this channel alone brought
// nothing. A peer that is stopped or busy answers nowhere: that time counts against no channel, and is waited for without limit.
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
  // The peer's kernel takes bytes on the channel's link: it is not the channel that is silent. Says nothing of the peer's process, and so
  // nothing against other channels.
  void Delivered(ChannelId channel);
  // The answer to the ping with this number.
  void Pong(ChannelId channel, uint64_t number, Nanos now);

  struct Ping {
    ChannelId channel;
    uint64_t number;
  };
  struct Verdict {
    std::vector<Ping> pings;        // to send now
    std::vector<ChannelId> silent;  // to give up now
    bool peer_silent = false;       // no channel has answered for the whole of the silence
  };
  // `outstanding`: some request waits for this peer. Without one there is nothing to watch.
  Verdict Tick(bool outstanding, Nanos now);

  // When anything was heard last, on channels too that are gone.
  Nanos heard() const { return heard_; }

  // No channel has been heard for the whole of the silence.
  bool AllSilent(Nanos now) const;

  // The channel is up, and a ping on it has been without an answer for the whole of the silence.
  bool Silent(ChannelId channel, Nanos now) const;

 private:
  struct State {
    Nanos heard = 0;
    Nanos answering_since = 0;   // since then no long gap between two things heard
    Nanos unanswered_since = 0;  // send time of the oldest ping without an answer since; 0: none
    Nanos witnessed_since = 0;   // another channel has answered a ping that was sent no earlier than that; 0: none has
    Nanos pinged = 0;            // send time of the latest ping
    std::map<uint64_t, Nanos> in_flight;
  };
  static void Answered(State* state) { state->unanswered_since = state->witnessed_since = 0; }

  // How much later than its witness's first answer the latest must be. The ping waits for a quarter of the silence before.
  Nanos WitnessedFor() const { return silence_ * 3 / 4; }

  const Nanos silence_;
  uint64_t next_number_ = 1;
  bool watching_ = false;
  Nanos heard_ = 0;
  std::map<ChannelId, State> channels_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FAILURE_DETECTOR_H_
