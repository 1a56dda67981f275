// Decides which run of another node's daemon is the current one, from what this daemon has observed itself. It reads no clock of another
// machine and believes no time that is sent. So a node that comes back with any clock, without its files, or as a copy is judged by the
// same rules.
//
// Messages of a run come over streams, and through the store. While one run sends over a stream, no other one takes its name: a live stream
// is observed, and an entry of the store may be left from a daemon that is gone. When the stream has ended, or nothing has come over it for
// kStreamAlive (its machine lost power, and nobody closed it), the next sender has the name. Among entries of the store, the store's own
// order decides; if there is none, a lease decides: a daemon that is gone cannot keep its entry for longer.
//
// Pure: time is an argument. One thread at a time.
#ifndef R2CC_HEALTH_VIEW_INCARNATIONS_H_
#define R2CC_HEALTH_VIEW_INCARNATIONS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/core/clock.h"

namespace r2cc::health {

// The way by which a message came.
struct MessageSource {
  uint64_t stream = 0;  // a number that no two streams have; 0: the store
  std::string from;     // for people: an address
};

class Incarnations {
 public:
  // Four keep-alives of a daemon, and what gRPC's ping needs to find out that nobody is there.
  static constexpr Nanos kStreamAlive = 2 * kNanosPerSecond;
  // More than the lease of an entry in the store: by then it is gone unless its daemon keeps it.
  static constexpr Nanos kEntryAlive = 7 * kNanosPerSecond;
  // A message that was sent before the other run began has come in by then.
  static constexpr Nanos kInFlight = kNanosPerSecond;
  // Streams of one node; the oldest are forgotten.
  static constexpr size_t kStreamsMax = 8;
  static constexpr size_t kFormerMax = 16;

  enum class Verdict {
    kCurrent,    // from the run that is believed
    kTakesOver,  // of another one, which is believed from now on
    kPending,    // of another one, which is not believed, as things are
  };
  struct Judgement {
    Verdict verdict = Verdict::kCurrent;
    bool known_former = false;  // kPending, kTakesOver: it was believed before
    Nanos ripe_at = 0;          // kPending: when it will be believed if the current run sends nothing more
    std::string current_from;   // kPending: the address from which the current run last sent
    uint64_t before = 0;        // kTakesOver: the run that was believed until now
    Nanos silent = 0;           // kTakesOver: time in which nothing came from the current run over a stream; 0: it never sent over one
  };

  // A message of run `incarnation` (not 0) of the daemon of `node` came in.
  Judgement Judge(const std::string& node, uint64_t incarnation, const MessageSource& source, Nanos now);

  // The current run and another one send at the same time. Each pair is reported once.
  struct Duplicate {
    bool found = false;
    std::string current_from;
    std::string other_from;
  };
  // To be asked after each Judge; found: what is new.
  Duplicate TakeDuplicate(const std::string& node);

  // The store's entry of `node` is from the run that is believed: its lease is a sign of life.
  bool EntryIsCurrent(const std::string& node) const;
  // The store has an entry of run `incarnation`, whether it is believed or not.
  bool EntryIs(const std::string& node, uint64_t incarnation) const;
  // A stream is over, of any run.
  void StreamEnded(uint64_t stream);
  // The store does not have an entry of `node` any more.
  void EntryGone(const std::string& node);
  // The store was lost: its entries prove nothing any more.
  void StoreLost();
  void Forget(const std::string& node) { nodes_.erase(node); }

  // The run that is believed; 0: none yet.
  uint64_t Current(const std::string& node) const;

 private:
  struct Stream {
    uint64_t incarnation = 0;
    Nanos received = 0;
    std::string from;
  };
  struct Rival {
    uint64_t incarnation = 0;  // 0: none
    std::string from;
    bool over_stream = false;
    Nanos first_received = 0;
    Nanos last_received = 0;
  };
  struct Node {
    uint64_t current = 0;
    std::string from;
    Nanos received = 0;  // when the current run last sent over a stream; 0: never
    std::map<uint64_t, Stream> streams;
    uint64_t in_store = 0;  // the run whose entry the store has; 0: none
    Nanos in_store_since = 0;
    bool current_left_store = false;  // its entry was there, and is not any more
    std::deque<uint64_t> former;      // newest last
    Rival rival;
    bool duplicate_reported = false;
    Duplicate duplicate;
  };

  // True: it is a new message, and not the same entry again.
  static bool Observe(Node* node, uint64_t incarnation, const MessageSource& source, Nanos now);
  static Nanos RipeAt(const Node& node, uint64_t incarnation, const MessageSource& source);
  static void TakeOver(Node* node, uint64_t incarnation, const MessageSource& source, Nanos now);
  static void NoteCurrent(Node* node, const MessageSource& source, Nanos now);
  static void NoteRival(Node* node, uint64_t incarnation, const MessageSource& source, bool former, Nanos now);

  std::map<std::string, Node> nodes_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_INCARNATIONS_H_
