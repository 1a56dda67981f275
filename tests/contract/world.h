// The lossless contract's test bed: two processes with rails between them, a job in each, and faults. The contract's tests see a transport
// through this interface alone, so it speaks of rails, flows and processes, and of nothing that one transport has and another lacks.
#ifndef R2CC_TESTS_CONTRACT_WORLD_H_
#define R2CC_TESTS_CONTRACT_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "plan/model.h"

namespace r2cc::contract {

using End = int;  // 0 or 1: a process on a node of its own
constexpr int kRails = 4;
constexpr int kOob = -1;  // in the place of a rail: the out-of-band interface

// Messages up to this size may be reported done as soon as they are copied.
constexpr size_t kEagerBytes = 64 * 1024;
// So many of a flow, beyond the last one that the receiver has.
constexpr uint64_t kEagerMessages = 32;

struct Options {
  bool full_fabric = false;  // every rail reaches every rail; else rail k reaches only rail k
  Nanos deadline = 30 * kNanosPerSecond;
  Nanos silence = 250 * kNanosPerMs;
  std::optional<uint32_t> chunk_bytes;  // unset: as the plugin likes
  int64_t rail_bytes_per_s = 50'000'000;
  std::vector<std::pair<End, int>> cut_at_start;  // down already when the processes start
};

enum class Loss {
  kNothing,
  kLargePackets,   // as of a switch port whose MTU was reset
  kOneConnection,  // of the rail's connections one that carries most, as of a sick member of a LAG; a new one passes
  kCompletions,    // what one connection was given arrives, and the device that was given it never reports so; of a new one it does
};

enum class FlowState { kOpening, kOpen, kFailed, kClosed };

// What a process reported to its daemon about its rails and links.
struct RailReport {
  enum class What { kLinkUp, kLinkFenced, kRailSlow, kRailSteady };
  What what = What::kLinkUp;
  int rail = 0;  // its own
  std::string cause;
  uint64_t replayed_bytes = 0;
};

class World {
 public:
  virtual ~World() = default;

  // What the end's node is called, in errors too.
  virtual std::string Node(End end) const = 0;
  virtual Nanos Now() const = 0;
  // Lets a short while pass, at most a few milliseconds. What happened until then is known afterwards, and only then.
  virtual void Pass() = 0;

  // ---- the job ----

  // Memory of the process; it stays as long as the world.
  virtual std::byte* Allocate(End end, size_t bytes) = 0;
  // Begins to open a flow from `from` to the other end, at home on `rail`. Flows are numbered from 0.
  virtual int Open(End from, int rail) = 0;
  virtual FlowState sender(int flow) const = 0;
  virtual FlowState receiver(int flow) const = 0;
  // One line, if that side has failed.
  virtual std::string SenderError(int flow) const = 0;
  virtual std::string ReceiverError(int flow) const = 0;
  // Requests of each side are numbered from 0; at most 32 may be outstanding.
  virtual void Send(int flow, const std::byte* data, size_t bytes) = 0;
  virtual void Receive(int flow, std::byte* data, size_t capacity) = 0;
  // How many requests were reported done.
  virtual uint64_t Sent(int flow) const = 0;
  virtual uint64_t Received(int flow) const = 0;
  // Of one of the last 32 messages that were received.
  virtual size_t SizeOf(int flow, uint64_t number) const = 0;
  // When these return nothing touches the flow's buffers any more.
  virtual void CloseSend(int flow) = 0;
  virtual void CloseReceive(int flow) = 0;
  // The process ends in order, as at exit; its flows are closed already.
  virtual void EndProcess(End end) = 0;

  // ---- faults; `rail` may be kOob ----

  // The interface of this end goes down: this end's kernel says so, the other end hears nothing.
  virtual void Cut(End end, int rail) = 0;
  // The port is off its switch: silence in both directions, and no event.
  virtual void Silence(End end, int rail) = 0;
  // Ends either.
  virtual void Heal(End end, int rail) = 0;
  // Runs at a divisor-th of its rate in both directions, and no event; 1: as before.
  virtual void Slow(End end, int rail, int divisor) = 0;
  virtual void StopProcess(End end) = 0;
  virtual void ContinueProcess(End end) = 0;
  // Without a last word. `child_holds_sockets`: a forked child sleeps on with copies of all descriptors.
  virtual void KillProcess(End end, bool child_holds_sockets) = 0;

  // Of what the end sends on the rail, so much is lost from now on, and no event. False: a trait that this world lacks, as its packets are
  // not the world's.
  virtual bool Lose(End /*end*/, int /*rail*/, Loss /*loss*/) { return false; }

  // From now on no device of the process can finish a close; or it can again, and finishes those that wait. False: a trait that this world
  // lacks, as no close can fail there.
  virtual bool FailCloses(End /*end*/, bool /*fails*/) { return false; }

  // Small messages are done when they are copied. False: a trait that this world lacks.
  virtual bool HasEagerMessages() const { return true; }

  // ---- the daemon, as this end's process sees it ----

  struct Verdict {
    End node = 0;
    int rail = 0;
    plan::PlannedState state = plan::PlannedState::kHealthy;
    uint16_t weight_permille = plan::kFullWeightPermille;
  };
  // A whole plan; what it does not name is healthy.
  virtual void Publish(End end, const std::vector<Verdict>& verdicts) = 0;
  // The daemon has been silent for so long that its verdicts do not count any more.
  virtual void LoseDaemon(End end) = 0;

  // ---- observation ----

  // What has left the end on the rail, everything included.
  virtual uint64_t LeftBytes(End end, int rail) const = 0;
  // All since the start, in order.
  virtual const std::vector<RailReport>& reports(End end) const = 0;
};

// A transport under test.
struct Transport {
  std::string name;
  // Why the world cannot be made here ("needs root: ..."); empty: it can.
  std::string (*missing)();
  std::unique_ptr<World> (*make)(const Options& options);
  // Real time passes: what is measured includes a busy machine.
  bool real_time = false;
  // How long to wait for what ought to happen soon, and how many times as long as elsewhere may take what is bounded.
  Nanos patience = 20 * kNanosPerSecond;
  int slack = 1;
  // What the machine keeps up with: rails for which a test asks more are so fast, and a silence for which it asks less is so long.
  int64_t rail_bytes_per_s_most = std::numeric_limits<int64_t>::max();
  Nanos silence_least = 0;
  // Tests that cannot be made here, by name, and the trait that they need: they are skipped. One that is missing here fails.
  std::map<std::string, std::string> lacks = {};
};

inline void PrintTo(const Transport& transport, std::ostream* out) { *out << transport.name; }

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_WORLD_H_
