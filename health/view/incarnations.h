// Which life of another node's daemon is the current one, from what this daemon has seen itself. No clock of another machine is asked, and
// no word about time is believed: a node that comes back with any clock, without its files, or as a copy is judged alike.
//
// A life is heard over streams, and through the store. While one life speaks over a stream, no other takes its name: a stream that lives is
// observed, an entry of the store may be what a daemon that is gone has left there. When the stream has ended, or nothing has come by it
// for kStreamAlive (its machine lost power, and nobody closed it), whoever speaks has the name. Among words of the store, the store's own
// order decides; where that says nothing, a lease does: a daemon that is gone cannot keep its entry for longer.
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

// Where a word came from.
struct WordSource {
  uint64_t stream = 0;  // a number that no two streams have; 0: the store
  std::string from;     // for people: an address
};

class Incarnations {
 public:
  // Four keep-alives of a daemon, and what gRPC's ping needs to find out that nobody is there.
  static constexpr Nanos kStreamAlive = 2 * kNanosPerSecond;
  // More than the lease of an entry in the store: by then it is gone unless its daemon keeps it.
  static constexpr Nanos kEntryAlive = 7 * kNanosPerSecond;
  // A word that was sent before the other life began has come in by then.
  static constexpr Nanos kInFlight = kNanosPerSecond;
  // Of one node; the oldest are forgotten.
  static constexpr size_t kStreamsMax = 8;
  static constexpr size_t kFormerMax = 16;

  enum class Verdict {
    kCurrent,    // of the life that is believed
    kTakesOver,  // of another one, which is believed from now on
    kHeld,       // of another one, which is not believed, as things are
  };
  struct Judgement {
    Verdict verdict = Verdict::kCurrent;
    bool known_former = false;  // kHeld, kTakesOver: it was believed before
    Nanos ripe_at = 0;          // kHeld: when it will be believed if the current life says nothing more
    std::string current_from;   // kHeld: where the one that is believed was heard last
    uint64_t before = 0;        // kTakesOver: who was believed until now
    Nanos silent = 0;           // kTakesOver: for so long nothing came from that one over a stream; 0: it never did
  };

  // A word of life `incarnation` (not 0) of the daemon of `node` came in.
  Judgement Judge(const std::string& node, uint64_t incarnation, const WordSource& source, Nanos now);

  // The current life and another one speak at the same time. Each pair is told once.
  struct Duplicate {
    bool found = false;
    std::string current_from;
    std::string other_from;
  };
  // To be asked after each Judge; found: what is new.
  Duplicate TakeDuplicate(const std::string& node);

  // The entry that the store has of `node` is of the life that is believed: its lease is a sign of life.
  bool EntryIsCurrent(const std::string& node) const;
  // The store has an entry of life `incarnation`, whether it is believed or not.
  bool EntryIs(const std::string& node, uint64_t incarnation) const;
  // A stream is over, whoever spoke by it.
  void StreamEnded(uint64_t stream);
  // The store does not have an entry of `node` any more.
  void EntryGone(const std::string& node);
  // The store was lost: what it had says nothing any more.
  void StoreLost();
  void Forget(const std::string& node) { nodes_.erase(node); }

  // The life that is believed; 0: none yet.
  uint64_t Current(const std::string& node) const;

 private:
  struct Stream {
    uint64_t incarnation = 0;
    Nanos heard = 0;
    std::string from;
  };
  struct Rival {
    uint64_t incarnation = 0;  // 0: none
    std::string from;
    bool over_stream = false;
    Nanos first_heard = 0;
    Nanos last_heard = 0;
  };
  struct Node {
    uint64_t current = 0;
    std::string from;
    Nanos heard = 0;  // the current life, over a stream; 0: never
    std::map<uint64_t, Stream> streams;
    uint64_t in_store = 0;  // whose entry the store has; 0: nobody's
    Nanos in_store_since = 0;
    bool current_left_store = false;  // its entry was there, and is not any more
    std::deque<uint64_t> former;      // newest last
    Rival rival;
    bool duplicate_told = false;
    Duplicate duplicate;
  };

  // True: it says something new, and not what an entry has said all along.
  static bool Observe(Node* node, uint64_t incarnation, const WordSource& source, Nanos now);
  static Nanos RipeAt(const Node& node, uint64_t incarnation, const WordSource& source);
  static void TakeOver(Node* node, uint64_t incarnation, const WordSource& source, Nanos now);
  static void NoteCurrent(Node* node, const WordSource& source, Nanos now);
  static void NoteRival(Node* node, uint64_t incarnation, const WordSource& source, bool former, Nanos now);

  std::map<std::string, Node> nodes_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_INCARNATIONS_H_
