// Holds the plan for the plugins: one shared-memory page per node, written by the daemon, read by every job's plugin.
//
// The memory is a memfd of kPageBytes, sealed with SHRINK, GROW, FUTURE_WRITE and SEAL before it is handed out: a read-only
// descriptor alone could be opened again for writing. The layout is a header and one body guarded by a sequence counter (odd while
// the daemon writes) and a CRC-32C over the body. A reader trusts nothing: it checks size and seals before it maps, clamps the
// entry count, verifies the checksum, and refuses a torn, foreign or garbled page whole, keeping its last good copy.
#ifndef R2CC_PLAN_PAGE_PAGE_H_
#define R2CC_PLAN_PAGE_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/epoch.h"
#include "base/core/hash.h"
#include "base/core/siphash.h"
#include "plan/model.h"

namespace r2cc::plan {

constexpr uint64_t kPageMagic = 0x5232'4343'5041'4745;  // "R2CCPAGE"
constexpr uint32_t kPageVersionLeast = 2;               // release 0.2.0 writes and reads 1 to 2
constexpr uint32_t kPageVersion = 3;
constexpr uint32_t kPageEntriesMax = 65'536;
// A page whose heartbeat is older than this has lost its daemon: its verdicts no longer count.
constexpr Nanos kPageStaleAfter = 2 * kNanosPerSecond;
// The verdicts of a daemon that ends on purpose, to be upgraded or moved, count for this time. A pod is stopped, its image fetched and
// started in that time. An operator's drain holds meanwhile, and jobs find new faults alone.
constexpr Nanos kPageEndLease = 30 * kNanosPerSecond;
// How often the daemon refreshes the heartbeat.
constexpr Nanos kPageHeartbeatInterval = kNanosPerSecond / 4;

// One NIC's verdict in the page, or a forbidden path's, which has the hashes of "NODE/NIC" of its ends, the earlier node first: no node's
// name has a slash, so a reader that looks for NICs never meets it. A drain for one job is an entry of "NODE/NIC" and JobHash(), kDrained.
// 24 bytes, no padding.
//
// FNV-1a can be collided in seconds. So from version 3 on an entry proves its owner by its tag, a hash under the page's own random key. The
// entry of a NIC whose hashes equal another's is stored under hashes with that key instead ("displaced"), where earlier releases do not
// find it.
struct PageEntry {
  uint64_t node_hash;  // Fnv1a64 of the node's name
  uint64_t nic_hash;   // Fnv1a64 of the NIC's name
  uint16_t weight_permille;
  uint8_t state;  // PlannedState
  uint8_t tag[5];
};
static_assert(sizeof(PageEntry) == 24);

// How a page names a job. Blanks are in no NIC's name.
inline std::string JobName(const std::string& job) { return "job " + job; }
inline uint64_t JobHash(const std::string& job) { return Fnv1a64(JobName(job)); }
// A NIC that an operator took away at once has an entry of "NODE/NIC" and this, kFailed, as long as the page has room. Earlier releases
// look for no such name.
inline constexpr char kOnPurposeName[] = "on purpose";

// Size of the memory: 64 bytes of header, the epoch and count, the entries (plan/page/page_layout.h). Mostly never touched.
constexpr size_t kPageBytes = 64 + 4 * sizeof(uint64_t) + kPageEntriesMax * sizeof(PageEntry);

// A page as values, after every check.
struct PageCopy {
  Epoch epoch;
  std::vector<PageEntry> entries;  // in strictly ascending order of (node_hash, nic_hash)
  SipKey key{};
  bool tagged = true;      // false: from a release whose entries have no tags
  uint64_t displaced = 0;  // entries that are

  // The entry with these hashes, or null. The pointer is valid as long as the copy.
  const PageEntry* Find(uint64_t node_hash, uint64_t nic_hash) const;
  // The entry of two names: NODE and NIC, or the ends of a path, or a path's end and JobName(). `found`: the one with their hashes, or
  // null. Null: the page has none that is theirs.
  const PageEntry* Theirs(const PageEntry* found, const std::string& first, const std::string& second) const;
  const PageEntry* Find(const std::string& first, const std::string& second) const;
  // True if `job` is to keep off NODE/NIC.
  bool DrainedFor(const std::string& job, const std::string& node, const std::string& nic) const;
  // True if an operator took NODE/NIC away at once.
  bool OnPurpose(const std::string& node, const std::string& nic) const;
  // True if the plan forbids the path between two NICs of different nodes; the ends in any order.
  bool PathBroken(const std::string& node, const std::string& nic, const std::string& peer_node, const std::string& peer_nic) const;
};

// A NIC whose name has the hash of another's, by intent or chance.
struct PageConflict {
  std::string node, nic;              // displaced
  std::string other_node, other_nic;  // the NIC with the same hash
};

// The values that readers of a page with `plan` get: entries hashed and in order. Drains for single jobs: the first kJobDrainsMax.
// If names of NICs have the same hash, the own node's NIC keeps its place, else that of the earlier name; `conflicts` gets the others, if
// it is not null.
PageCopy PageCopyOf(const Plan& plan, const SipKey& key = {}, const std::string& own_node = "",
                    std::vector<PageConflict>* conflicts = nullptr);

// Owns the writable mapping. One thread at a time.
class PageWriter {
 public:
  // Makes, maps and seals the memory. Null and a line in `error` if the kernel refuses.
  static std::unique_ptr<PageWriter> Create(std::string* error);
  ~PageWriter();
  PageWriter(const PageWriter&) = delete;
  PageWriter& operator=(const PageWriter&) = delete;

  // A descriptor to hand to jobs (SCM_RIGHTS); owned by the writer.
  int fd() const { return fd_; }

  // Publishes a whole plan and refreshes the heartbeat. False, with nothing changed and a line in `error`, if the plan has more than
  // kPageEntriesMax entries, names a NIC or a path twice, or its epoch is not later than the published one.
  // `own_node`: as of PageCopyOf().
  bool Publish(const Plan& plan, Nanos now, std::string* error, const std::string& own_node = "");
  // The conflicts of the published plan.
  const std::vector<PageConflict>& conflicts() const { return conflicts_; }

  // Shows readers that the daemon runs.
  void Heartbeat(Nanos now);

  // Shows readers that the daemon ends on purpose: the page counts for kPageEndLease from `now`. Nothing may follow.
  void EndOnPurpose(Nanos now);

 private:
  PageWriter(int fd, void* memory) : fd_(fd), memory_(memory) {}
  int fd_;
  void* memory_;
  Epoch published_;
  std::vector<PageConflict> conflicts_;
};

// Owns a read-only mapping of somebody else's page. One thread at a time.
class PageReader {
 public:
  // Checks size, seals, magic and version of `fd`, then maps it; takes ownership of `fd` in any case. Null and one line in `error`
  // (naming what is wrong, e.g. "page version 7, this release reads 1: upgrade r2ccd or the plugin") if anything is not as it must be.
  static std::unique_ptr<PageReader> Open(int fd, std::string* error);
  ~PageReader();
  PageReader(const PageReader&) = delete;
  PageReader& operator=(const PageReader&) = delete;

  enum class Read { kNew, kUnchanged, kRefused };

  // Takes a consistent copy, with a bounded number of tries. kNew: copy() is newer than before (a later epoch). kUnchanged: nothing
  // new. kRefused: torn, garbled or older than the last good copy, which stays; `refusals()` counts.
  Read Refresh();

  // The last good copy; empty (epoch 0) before the first.
  const PageCopy& copy() const { return copy_; }
  uint64_t refusals() const { return refusals_; }

  // True if the daemon's heartbeat is older than kPageStaleAfter at `now`, this process's CLOCK_MONOTONIC (or as far in the future: no
  // daemon wrote that), and no last heartbeat counts for longer (EndOnPurpose).
  bool Stale(Nanos now) const;
  // Its daemon has ended on purpose.
  bool ended() const;

 private:
  PageReader(int fd, void* memory);
  int fd_;
  void* memory_;               // mapped for reading only
  uint64_t to_writers_clock_;  // added to a time of this process, which may run in another time namespace
  PageCopy copy_;
  uint64_t sequence_ = 0;        // of the body that copy_ was taken from: the same again needs no second look
  std::vector<uint64_t> words_;  // of a body being taken; kept to spare the allocation
  uint64_t refusals_ = 0;
};

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PAGE_PAGE_H_
