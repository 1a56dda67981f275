// What travels, counted by kind. Bytes are those on the wire: the serialised message and the overhead that is stated here.
#ifndef R2CC_TESTS_CLUSTER_TRAFFIC_H_
#define R2CC_TESTS_CLUSTER_TRAFFIC_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace r2cc::cluster {

enum class Kind : uint8_t {
  kProbe,       // datagrams of rail probes, pings and answers
  kPush,        // views from daemon to daemon
  kStoreWrite,  // puts and their answers
  kStoreLease,  // a lease's keep-alives and their answers
  kStoreEvent,  // what a watcher is told, and the pages that a new one reads
};
constexpr int kKinds = 5;

inline const char* KindName(Kind kind) {
  constexpr const char* kNames[kKinds] = {"probe", "push", "store_write", "store_lease", "store_event"};
  return kNames[static_cast<int>(kind)];
}

// Ethernet 18, IPv4 20, UDP 8.
constexpr size_t kDatagramOverheadBytes = 46;
// gRPC's prefix 5, HTTP/2's DATA frame 9, TLS 1.3's record 22.
constexpr size_t kMessageOverheadBytes = 36;
// Of each segment: Ethernet 18, IPv4 20, TCP with time stamps 32. Bare acknowledgements are not counted.
constexpr size_t kSegmentOverheadBytes = 70;
constexpr size_t kSegmentPayloadBytes = 1448;

inline uint64_t StreamBytes(size_t message_bytes) {
  const size_t bytes = message_bytes + kMessageOverheadBytes;
  return bytes + (bytes + kSegmentPayloadBytes - 1) / kSegmentPayloadBytes * kSegmentOverheadBytes;
}

struct Traffic {
  uint64_t messages = 0;
  uint64_t bytes = 0;
};

struct Counts {
  std::array<Traffic, kKinds> by_kind{};

  void Add(Kind kind, uint64_t bytes) {
    Traffic& one = by_kind[static_cast<size_t>(kind)];
    ++one.messages;
    one.bytes += bytes;
  }
  const Traffic& Of(Kind kind) const { return by_kind[static_cast<size_t>(kind)]; }
  // All but probes, which go on whether or not there is a fault.
  uint64_t NewsMessages() const;
  uint64_t NewsBytes() const;

  friend Counts operator-(Counts a, const Counts& b) {
    for (size_t i = 0; i < a.by_kind.size(); ++i) {
      a.by_kind[i].messages -= b.by_kind[i].messages;
      a.by_kind[i].bytes -= b.by_kind[i].bytes;
    }
    return a;
  }
};

inline uint64_t Counts::NewsMessages() const {
  uint64_t sum = 0;
  for (size_t i = 1; i < by_kind.size(); ++i) sum += by_kind[i].messages;
  return sum;
}
inline uint64_t Counts::NewsBytes() const {
  uint64_t sum = 0;
  for (size_t i = 1; i < by_kind.size(); ++i) sum += by_kind[i].bytes;
  return sum;
}

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_TRAFFIC_H_
