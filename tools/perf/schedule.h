// Lists which slice a rank sends, receives, reduces and stores, and in which order. Pure, the same on every rank.
//
// Work has NCCL's layout: a message is split over the channels. The ring of a channel runs in loops of one chunk per rank, a chunk has at
// most four slices, and a slice is the content of one isend or irecv. Empty slices travel as zero-byte messages, as they do under NCCL.
#ifndef R2CC_TOOLS_PERF_SCHEDULE_H_
#define R2CC_TOOLS_PERF_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace r2cc::perf {

enum class Collective { kAllReduce, kSendRecv, kAllToAll };

const char* CollectiveName(Collective collective);
std::optional<Collective> ParseCollective(std::string_view name);

// Sizes in elements. Tests shrink them to walk every boundary.
struct Geometry {
  int64_t slice_elements = 256 * 1024;    // 1 MiB of float32
  int64_t slice_elements_min = 8 * 1024;  // a short chunk is cut into finer slices, down to this, so that it still pipelines
  int64_t slices_per_chunk = 4;
  int64_t align_elements = 32;               // 128 bytes
  int64_t channel_elements_min = 16 * 1024;  // a channel takes part in a message only for at least this much
};

// One step of one channel of one rank. Its value is what arrives from recv_peer (if any) plus input[input_at...] (if any);
// the value goes to output[output_at...] (if not negative) and to send_peer (if any).
struct Op {
  int recv_peer = -1;
  int send_peer = -1;
  int64_t input_at = -1;
  int64_t output_at = -1;
  int64_t elements = 0;
};

struct RankPosition {
  int rank = 0;
  int ranks = 0;
  int channel = 0;
  int channels = 0;
};

// The steps of one channel. count: elements of the whole buffer for all_reduce and sendrecv, elements per pair of ranks for alltoall. A
// channel without a share of the message has no steps. A message without elements has one zero-byte slice in the place of each slice, on
// channel 0.
std::vector<Op> BuildProgram(Collective collective, const RankPosition& position, int64_t count, const Geometry& geometry = {});

// Peers that a rank sends to (receives from) on every channel, in the order in which they are polled.
std::vector<int> SendPeers(Collective collective, int rank, int ranks);
std::vector<int> RecvPeers(Collective collective, int rank, int ranks);

// Elements of a row whose requested size is `bytes`: the parameter of BuildProgram, and how many elements input and output hold.
int64_t CountOf(Collective collective, int64_t bytes, int ranks);
int64_t BufferElements(Collective collective, int64_t count, int ranks);

// nccl-tests' factor from algorithm bandwidth to bus bandwidth.
double BusFactor(Collective collective, int ranks);

// Hands out the steps of a program. Every flow's messages stay in sequence; anything else may overtake. A step runs as soon as it is the
// next of each flow that it touches, its data has arrived and there is room to send. So the sends that open the next loop of a ring leave
// while the last slices of this loop are still in flight, and the wire never idles between loops.
class Sequencer {
 public:
  Sequencer() = default;
  Sequencer(std::vector<Op> program, int ranks);

  bool finished() const { return left_ == 0; }
  // Back to the first step.
  void Rewind();
  // How many messages this program receives from (sends to) a peer in total.
  int64_t receives(int peer) const { return static_cast<int64_t>(recv_[peer].steps.size()); }
  int64_t sends(int peer) const { return static_cast<int64_t>(send_[peer].steps.size()); }
  // The n-th step that receives from `peer`: how much must arrive.
  const Op& Receive(int peer, int64_t n) const { return program_[recv_[peer].steps[n]]; }

  // The next step that can run, or nullptr; it counts as done from then on. arrived(peer): the oldest unread message of the peer has come.
  // room(peer): one more can be sent.
  template <typename Arrived, typename Room>
  const Op* Next(const Arrived& arrived, const Room& room) {
    if (next_local_ < local_.size()) return Take(local_[next_local_++]);
    for (int peer : recv_peers_) {
      if (recv_[peer].finished() || !arrived(peer)) continue;
      const size_t step = recv_[peer].head();
      const int to = program_[step].send_peer;
      if (to >= 0 && (send_[to].head() != step || !room(to))) continue;
      return Take(step);
    }
    for (int peer : send_peers_) {
      if (send_[peer].finished()) continue;
      const size_t step = send_[peer].head();
      if (program_[step].recv_peer < 0 && room(peer)) return Take(step);
    }
    return nullptr;
  }

 private:
  struct Queue {
    std::vector<size_t> steps;
    size_t next = 0;
    bool finished() const { return next == steps.size(); }
    size_t head() const { return steps[next]; }
  };

  const Op* Take(size_t step);

  std::vector<Op> program_;
  std::vector<Queue> send_;  // by peer
  std::vector<Queue> recv_;
  std::vector<int> send_peers_;  // in order of first use
  std::vector<int> recv_peers_;
  std::vector<size_t> local_;
  size_t next_local_ = 0;
  size_t left_ = 0;
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_SCHEDULE_H_
