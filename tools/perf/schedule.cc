#include "tools/perf/schedule.h"

#include <algorithm>
#include <utility>

namespace r2cc::perf {
namespace {

constexpr int64_t kElementBytes = sizeof(float);

int64_t CeilDiv(int64_t value, int64_t by) { return (value + by - 1) / by; }
int64_t RoundUp(int64_t value, int64_t to) { return CeilDiv(value, to) * to; }

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  bool used = false;
  int64_t size() const { return end - begin; }
};

// The channel's share of `count` elements: aligned, contiguous, as even as the alignment allows.
Range ShareOf(const RankPosition& position, int64_t count, const Geometry& geometry) {
  const int64_t channels = std::clamp<int64_t>(count / geometry.channel_elements_min, 1, position.channels);
  if (position.channel >= channels) return {};
  const int64_t units = CeilDiv(count, geometry.align_elements);
  const int64_t each = units / channels;
  const int64_t extra = units % channels;
  const int64_t first = position.channel * each + std::min<int64_t>(position.channel, extra);
  const int64_t last = first + each + (position.channel < extra ? 1 : 0);
  return {std::min(first * geometry.align_elements, count), std::min(last * geometry.align_elements, count), true};
}

// The slices of a piece of work whose nominal length is `nominal`; short work is cut finer. Never empty: no elements are one empty slice.
std::vector<std::pair<int64_t, int64_t>> SlicesOf(int64_t elements, int64_t nominal, const Geometry& geometry) {
  const int64_t even = RoundUp(CeilDiv(nominal, geometry.slices_per_chunk), geometry.align_elements);
  const int64_t slice = std::min(geometry.slice_elements, std::max(geometry.slice_elements_min, even));
  std::vector<std::pair<int64_t, int64_t>> slices;
  int64_t at = 0;
  do {
    slices.emplace_back(at, std::min(slice, elements - at));
    at += slice;
  } while (at < elements);
  return slices;
}

// Reduce-scatter, then all-gather, around the ring rank -> rank + 1, one loop.
void AppendRingLoop(const RankPosition& position, int64_t loop_begin, int64_t loop_elements, int64_t chunk_elements,
                    const Geometry& geometry, std::vector<Op>* program) {
  const int ranks = position.ranks;
  const int next = (position.rank + 1) % ranks;
  const int previous = (position.rank + ranks - 1) % ranks;
  const int steps = 2 * ranks - 1;
  for (int step = 0; step < steps; ++step) {
    // At step s a rank handles the chunk that its predecessor handled at s - 1.
    const int64_t chunk = ((position.rank - 1 - step) % ranks + ranks) % ranks;
    const int64_t begin = std::min(chunk * chunk_elements, loop_elements);
    const int64_t elements = std::min(chunk_elements, loop_elements - begin);
    const bool first = step == 0;
    const bool reduces = step < ranks;      // this rank's contribution enters
    const bool stores = step >= ranks - 1;  // the sum is whole from here on
    const bool last = step == steps - 1;
    for (const auto& [at, size] : SlicesOf(elements, chunk_elements, geometry)) {
      const int64_t where = loop_begin + begin + at;
      program->push_back({first ? -1 : previous, last ? -1 : next, reduces ? where : -1, stores ? where : -1, size});
    }
  }
}

void AppendRing(const RankPosition& position, const Range& share, const Geometry& geometry, std::vector<Op>* program) {
  const int64_t chunk_max = geometry.slice_elements * geometry.slices_per_chunk;
  int64_t at = share.begin;
  do {
    const int64_t left = share.end - at;
    const int64_t chunk = std::min(chunk_max, RoundUp(CeilDiv(left, position.ranks), geometry.align_elements));
    const int64_t loop = std::min(left, chunk * position.ranks);
    AppendRingLoop(position, at, loop, chunk, geometry, program);
    at += loop;
  } while (at < share.end);
}

// Every rank exchanges with the ranks at distance `distances`; sends and receives are steps of their own.
void AppendExchange(const RankPosition& position, const Range& share, int64_t block, bool blocks_by_peer, const std::vector<int>& distances,
                    const Geometry& geometry, std::vector<Op>* program) {
  for (int distance : distances) {
    const int to = (position.rank + distance) % position.ranks;
    const int from = (position.rank + position.ranks - distance) % position.ranks;
    const int64_t input = share.begin + (blocks_by_peer ? to * block : 0);
    const int64_t output = share.begin + (blocks_by_peer ? from * block : 0);
    for (const auto& [at, size] : SlicesOf(share.size(), share.size(), geometry)) {
      if (distance == 0) {
        program->push_back({-1, -1, input + at, output + at, size});
        continue;
      }
      program->push_back({-1, to, input + at, -1, size});
      program->push_back({from, -1, -1, output + at, size});
    }
  }
}

std::vector<int> Distances(Collective collective, int ranks) {
  if (collective != Collective::kAllToAll) return {1};
  std::vector<int> distances;
  for (int distance = 1; distance < ranks; ++distance) distances.push_back(distance);
  return distances;
}

}  // namespace

const char* CollectiveName(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce: return "all_reduce";
    case Collective::kSendRecv: return "sendrecv";
    case Collective::kAllToAll: return "alltoall";
  }
  return "?";
}

std::optional<Collective> ParseCollective(std::string_view name) {
  for (Collective collective : {Collective::kAllReduce, Collective::kSendRecv, Collective::kAllToAll})
    if (name == CollectiveName(collective)) return collective;
  return std::nullopt;
}

std::vector<Op> BuildProgram(Collective collective, const RankPosition& position, int64_t count, const Geometry& geometry) {
  std::vector<Op> program;
  const Range share = ShareOf(position, count, geometry);
  if (!share.used) return program;
  if (collective == Collective::kAllReduce) {
    AppendRing(position, share, geometry, &program);
    return program;
  }
  const bool to_all = collective == Collective::kAllToAll;
  std::vector<int> distances = Distances(collective, position.ranks);
  if (to_all) distances.insert(distances.begin(), 0);  // a rank's own block is a plain copy
  AppendExchange(position, share, count, to_all, distances, geometry, &program);
  return program;
}

std::vector<int> SendPeers(Collective collective, int rank, int ranks) {
  std::vector<int> peers;
  for (int distance : Distances(collective, ranks)) peers.push_back((rank + distance) % ranks);
  return peers;
}

std::vector<int> RecvPeers(Collective collective, int rank, int ranks) {
  std::vector<int> peers;
  for (int distance : Distances(collective, ranks)) peers.push_back((rank + ranks - distance) % ranks);
  return peers;
}

int64_t CountOf(Collective collective, int64_t bytes, int ranks) {
  const int64_t elements = bytes / kElementBytes;
  return collective == Collective::kAllToAll ? elements / ranks : elements;
}

int64_t BufferElements(Collective collective, int64_t count, int ranks) {
  return collective == Collective::kAllToAll ? count * ranks : count;
}

double BusFactor(Collective collective, int ranks) {
  switch (collective) {
    case Collective::kAllReduce: return 2.0 * (ranks - 1) / ranks;
    case Collective::kSendRecv: return 1.0;
    case Collective::kAllToAll: return static_cast<double>(ranks - 1) / ranks;
  }
  return 1.0;
}

Sequencer::Sequencer(std::vector<Op> program, int ranks)
    : program_(std::move(program)), send_(ranks), recv_(ranks), left_(program_.size()) {
  for (size_t step = 0; step < program_.size(); ++step) {
    const Op& op = program_[step];
    if (op.send_peer >= 0) {
      if (send_[op.send_peer].steps.empty()) send_peers_.push_back(op.send_peer);
      send_[op.send_peer].steps.push_back(step);
    }
    if (op.recv_peer >= 0) {
      if (recv_[op.recv_peer].steps.empty()) recv_peers_.push_back(op.recv_peer);
      recv_[op.recv_peer].steps.push_back(step);
    }
    if (op.send_peer < 0 && op.recv_peer < 0) local_.push_back(step);
  }
}

void Sequencer::Rewind() {
  for (Queue& queue : send_) queue.next = 0;
  for (Queue& queue : recv_) queue.next = 0;
  next_local_ = 0;
  left_ = program_.size();
}

const Op* Sequencer::Take(size_t step) {
  const Op& op = program_[step];
  if (op.send_peer >= 0) ++send_[op.send_peer].next;
  if (op.recv_peer >= 0) ++recv_[op.recv_peer].next;
  --left_;
  return &op;
}

}  // namespace r2cc::perf
