// Defines a collective as data: which member sends which bytes to which, in what order. One list, several readers: a checker (check.h), the
// simulator (plan/simulate), and the code that moves the bytes (member_progress.h).
//
// The vector is cut into blocks. Each member has lanes; a lane is a queue of sends and a queue of receives, each done strictly in
// order and one at a time. A send and a receive that name each other's member and lane are the two ends of one transfer: the k-th send
// from a lane to another meets the k-th receive there. A transfer begins when its send is at the head of its queue, its receive at the
// head of its own, and both are due; nothing is buffered between lanes, so one message a lane is all the memory that a schedule needs.
//
//     member 2, lane 0   sends:     block 2 -> member 3 | block 1 -> member 3 | ...
//                        receives:  block 1 + from member 1 | block 0 + from member 1 | ...
//
// A step is due by the count of what already happened to its block at its member, so lanes need no other order:
//   - a send, when exactly `after_receives` receives into the block are complete there;
//   - a receive that adds, when at least `after_receives` are, and exactly `after_sends` sends of it;
//   - a receive that overwrites, when exactly `after_receives` are, and exactly `after_sends` sends of it.
// A send is complete when the peer has the bytes and will not ask for them again. That is why receives wait for sends: until then the
// old bytes may have to be sent once more over another rail.
//
// Steps are made on demand: no list is stored, and making one allocates nothing.
#ifndef R2CC_PLAN_SCHEDULE_SCHEDULE_H_
#define R2CC_PLAN_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <string>

namespace r2cc::plan {

enum class Collective : uint8_t {
  kAllReduce,      // every member ends with the sum of all members' vectors
  kReduceScatter,  // the owner of each block ends with its sum
  kAllGather,      // every member ends with each block as its owner had it
};

enum class StepKind : uint8_t {
  kSend,
  kReceive,        // overwrites the block
  kReceiveReduce,  // adds to the block
};

// Part of the vector, in bytes.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t bytes() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

struct Step {
  StepKind kind = StepKind::kSend;
  uint32_t peer = 0;       // the other member
  uint32_t peer_lane = 0;  // and its lane
  uint32_t block = 0;      // the first of
  uint32_t blocks = 1;     // the number of blocks in a row, each of which must be due
  uint32_t after_receives = 0;
  uint32_t after_sends = 0;  // receives only

  friend bool operator==(const Step&, const Step&) = default;
};

// Immutable; any thread. Arguments that are out of range are the caller's error and end the process or are undefined.
class Schedule {
 public:
  virtual ~Schedule() = default;

  virtual std::string name() const = 0;  // for people: "direct k=8"
  virtual Collective collective() const { return Collective::kAllReduce; }
  virtual uint32_t members() const = 0;
  // The blocks follow each other without a gap and together are the vector. A block may be empty; its steps are done all the same.
  virtual uint32_t blocks() const = 0;
  // Bytes of `count` blocks from `first` on.
  virtual Range RangeOf(uint32_t first, uint32_t count) const = 0;
  // The member that has the block at the start of an AllGather, or at the end of a ReduceScatter. No meaning for AllReduce.
  virtual uint32_t OwnerOf(uint32_t /*block*/) const { return 0; }

  virtual uint32_t Lanes(uint32_t member) const = 0;
  virtual uint32_t Sends(uint32_t member, uint32_t lane) const = 0;
  virtual uint32_t Receives(uint32_t member, uint32_t lane) const = 0;
  virtual Step Send(uint32_t member, uint32_t lane, uint32_t index) const = 0;
  virtual Step Receive(uint32_t member, uint32_t lane, uint32_t index) const = 0;
  // How much of a busy port a lane's sends get, relative to the other lanes that use it at that moment.
  virtual double Weight(uint32_t /*member*/, uint32_t /*lane*/) const { return 1; }

  // Members that do the same: with n of them, rotation[i + 1 mod n] does what rotation[i] does, on the same lanes, with each peer of
  // the rotation replaced by the next one and all other peers kept. Transfers between two of them use the same lane at both ends.
  // Empty if there are none.
  virtual std::span<const uint32_t> Rotation() const { return {}; }
};

// Piece `index` of [0, bytes) cut into `pieces` parts that differ by at most kElementBytes, cut between elements.
constexpr uint64_t kElementBytes = 16;  // the largest element of a collective, so that no cut goes through one
Range EvenPiece(uint64_t bytes, uint64_t index, uint64_t pieces);

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_SCHEDULE_SCHEDULE_H_
