// The job's own account of every message, kept beside the sessions and never shown to them: what was posted, what reached the wire,
// what was written where, what was reported done. Anything that breaks the lossless contract becomes a violation, with its time.
#ifndef R2CC_TESTS_SIM_CHECKERS_H_
#define R2CC_TESTS_SIM_CHECKERS_H_

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sim/tap.h"
#include "tests/sim/timeline.h"

namespace r2cc::sim {

class Checker {
 public:
  explicit Checker(const Timeline* timeline) : timeline_(timeline) {}
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // ---- the job's side ----

  // A flow of the job, before either end knows it. `messages`: (bytes to send, bytes of the buffer to receive into).
  int AddFlow(int sender, int receiver, const std::vector<std::pair<uint64_t, uint64_t>>& messages);
  void Opened(int flow, net::FlowId id) { by_id_[{flows_[AsIndex(flow)].sender, flows_[AsIndex(flow)].receiver, id}] = flow; }
  // A flow that is somebody else's, who looks at it himself.
  void Ignore(int sender, int receiver, net::FlowId id) { ignored_.emplace(sender, receiver, id); }
  std::byte* PostSend(int flow, net::MessageId message);
  std::byte* PostReceive(int flow, net::MessageId message);
  // What the session says; `copied`: it may say so as soon as it has a copy.
  void SendDone(int flow, net::MessageId message, bool copied);
  void AckedThrough(int flow, net::MessageId through);
  void ReceiveDone(int flow, net::MessageId message, uint64_t bytes);
  // After these nothing may touch the flow's buffers at that end.
  void ClosedSend(int flow);
  void ClosedReceive(int flow);
  // Buffers that were given back have not been written since.
  void CheckAtEnd();

  // ---- the wire's side ----

  void Reads(const std::byte* from, size_t bytes);
  // The same by a device, which may send again what the other one has: of a message that has arrived, also after it was given back. See
  // SendLink::Holds().
  void DeviceReads(const std::byte* from);
  void Writes(const std::byte* to, size_t bytes);
  void ChunkSent(const Carrying& who, const net::Chunk& chunk);
  void ChunkBegun(const Carrying& who, const net::Chunk& header, const std::byte* destination);
  void ChunkFinished(const Carrying& who, const net::Chunk& header);
  void ChunkRefused(const Carrying& who, const net::Chunk& header);
  void Placing(const Carrying& who, const std::byte* to, size_t bytes);
  bool ChunkPlaced(const Carrying& who, const net::Chunk& header);
  void Garbled(const Carrying& who);
  void Keyed(const Carrying& who, const net::Chunk& header, bool right, bool again);
  void CarrierEnded(const Carrying& who);
  // The initiator takes back what was in flight on it.
  void Fenced(const Carrying& who);

  // Names the checker, so that a mutant can be told to be caught by the right one.
  void Violation(const std::string& checker, const std::string& what);
  const std::vector<std::string>& violations() const { return violations_; }
  const std::array<uint64_t, kSituations>& situations() const { return situations_; }

 private:
  using Name = std::tuple<int, int, net::LinkId, net::Incarnation>;  // of a path
  static Name NameOf(const Carrying& who) { return {who.receiver, who.sender, who.link, who.incarnation}; }

  struct ChunkRecord {
    Name sent_on{};
    Name claim{};
    int sent = 0;  // how often
    bool claimed = false, finished = false;
  };
  struct Message {
    uint64_t bytes = 0, capacity = 0;
    std::vector<std::byte> out, in;
    bool send_posted = false, send_done = false, receive_posted = false, receive_done = false;
    uint32_t chunk_bytes = 0;
    std::vector<ChunkRecord> chunks;  // empty until the first is sent
    size_t finished = 0;
  };
  struct Flow {
    int sender = 0, receiver = 0;
    std::vector<Message> messages;
    net::MessageId arrived_through = 0;
    bool send_closed = false, receive_closed = false;
  };
  struct Region {
    const std::byte* end = nullptr;
    const std::byte* usable_end = nullptr;  // beyond: a guard
    bool out = false;
    bool live = false;
    int flow = 0;
    net::MessageId message = 0;
    std::string name;
  };

  static size_t AsIndex(int flow) { return static_cast<size_t>(flow); }
  Message& At(int flow, net::MessageId message) { return flows_[AsIndex(flow)].messages[message]; }
  Region* Find(const std::byte* at);
  void Release(const std::byte* begin);
  std::string Describe(int flow, net::MessageId message) const;
  bool Ignores(const Carrying& who, const net::Chunk& chunk) const { return ignored_.contains({who.sender, who.receiver, chunk.flow}); }
  ChunkRecord* ChunkOf(const Carrying& who, const net::Chunk& chunk, int* flow);
  bool Ended(const Name& epoch) const;
  void Reached(Situation situation) { ++situations_[static_cast<size_t>(situation)]; }

  const Timeline* const timeline_;
  std::vector<Flow> flows_;
  std::map<std::tuple<int, int, net::FlowId>, int> by_id_;
  std::set<std::tuple<int, int, net::FlowId>> ignored_;
  std::map<const std::byte*, Region> regions_;
  std::map<std::tuple<int, int, net::LinkId>, net::Incarnation> ended_;
  std::set<Name> carried_;  // at least one chunk
  std::array<uint64_t, kSituations> situations_{};
  std::vector<std::string> violations_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_CHECKERS_H_
