#include "plan/page/page.h"

#include <sched.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/core/hash.h"
#include "base/core/shared_memory.h"
#include "plan/page/clock_offset.h"
#include "plan/page/page_layout.h"

namespace r2cc::plan {
namespace {

constexpr SharedKind kPage = {"page", kPageMagic, kPageVersionLeast, kPageVersion, sizeof(PageLayout), Writable::kByMakerOnly};

// A writer needs some microseconds and writes a few times a second at most; who meets it this often meets a dead one.
constexpr int kReadTriesMax = 32;

auto KeyOf(const PageEntry& entry) { return std::tie(entry.node_hash, entry.nic_hash); }

bool Ascending(const std::vector<PageEntry>& entries) {
  for (size_t i = 1; i < entries.size(); ++i)
    if (!(KeyOf(entries[i - 1]) < KeyOf(entries[i]))) return false;
  return true;
}

// No name has a NUL.
SipKey KeyIn(const PageLayout& page) { return {page.key, kPageMagic}; }

uint64_t TagOf(const SipKey& key, const std::string& first, const std::string& second) { return SipHash24(key, first + '\0' + second); }

// The key of the displaced entry of two names.
uint64_t DisplacedHash(const SipKey& key, const std::string& name) { return SipHash24({~key[0], ~key[1]}, name); }

PageEntry EntryOf(const SipKey& key, const std::string& first, const std::string& second, bool displaced, PlannedState state,
                  uint16_t weight_permille) {
  PageEntry entry{};
  entry.node_hash = displaced ? DisplacedHash(key, first) : Fnv1a64(first);
  entry.nic_hash = displaced ? DisplacedHash(key, second) : Fnv1a64(second);
  entry.weight_permille = weight_permille;
  entry.state = static_cast<uint8_t>(state);
  const uint64_t tag = TagOf(key, first, second);
  std::memcpy(entry.tag, &tag, sizeof(entry.tag));
  return entry;
}

// The NICs with displaced entries: all whose hashes are those of an earlier one.
std::vector<bool> Displaced(const Plan& plan, const std::string& own_node, std::vector<PageConflict>* conflicts) {
  struct Hashes {
    uint64_t node, nic;
    bool other_node;  // than the own
    size_t at;
  };
  std::vector<bool> displaced(plan.nics.size());
  std::vector<Hashes> nics, ends;
  nics.reserve(plan.nics.size());
  ends.reserve(plan.nics.size());
  for (size_t at = 0; at < plan.nics.size(); ++at) {
    const PlannedNic& nic = plan.nics[at];
    nics.push_back({Fnv1a64(nic.node), Fnv1a64(nic.nic), nic.node != own_node, at});
    ends.push_back({Fnv1a64(nic.node + "/" + nic.nic), 0, nic.node != own_node, at});
  }
  for (std::vector<Hashes>* list : {&nics, &ends}) {
    const auto order = [&plan](const Hashes& h) {
      return std::tie(h.node, h.nic, h.other_node, plan.nics[h.at].node, plan.nics[h.at].nic);
    };
    std::sort(list->begin(), list->end(), [&](const Hashes& a, const Hashes& b) { return order(a) < order(b); });
    for (size_t i = 1, first = 0; i < list->size(); ++i) {
      const Hashes& one = (*list)[first];
      const Hashes& other = (*list)[i];
      if (std::tie(one.node, one.nic) != std::tie(other.node, other.nic)) {
        first = i;
        continue;
      }
      const PlannedNic& kept = plan.nics[one.at];
      const PlannedNic& moved = plan.nics[other.at];
      // The very same NIC twice is no conflict, but no plan either.
      if ((kept.node == moved.node && kept.nic == moved.nic) || displaced[other.at]) continue;
      displaced[other.at] = true;
      if (conflicts != nullptr) conflicts->push_back({moved.node, moved.nic, kept.node, kept.nic});
    }
  }
  return displaced;
}

std::vector<uint64_t> BodyOf(const PageCopy& copy) {
  std::vector<uint64_t> words(kPageBodyEntries + copy.entries.size() * kPageEntryWords);
  words[kPageBodyIncarnation] = copy.epoch.incarnation;
  words[kPageBodyDisplaced] = copy.displaced;
  words[kPageBodyEpochCounter] = copy.epoch.counter;
  words[kPageBodyEntryCount] = copy.entries.size();
  if (!copy.entries.empty()) std::memcpy(&words[kPageBodyEntries], copy.entries.data(), copy.entries.size() * sizeof(PageEntry));
  return words;
}

// The inverse, for words whose count was clamped and whose checksum is right. False if they are not a plan all the same.
bool CopyOf(const std::vector<uint64_t>& words, PageCopy* copy) {
  copy->epoch.incarnation = words[kPageBodyIncarnation];
  copy->displaced = words[kPageBodyDisplaced];
  copy->epoch.counter = words[kPageBodyEpochCounter];
  copy->entries.resize((words.size() - kPageBodyEntries) / kPageEntryWords);
  if (!copy->entries.empty()) std::memcpy(copy->entries.data(), &words[kPageBodyEntries], copy->entries.size() * sizeof(PageEntry));
  for (const PageEntry& entry : copy->entries)
    if (entry.weight_permille > kFullWeightPermille || entry.state > static_cast<uint8_t>(PlannedState::kDrained)) return false;
  return Ascending(copy->entries);
}

uint64_t ChecksumOf(const std::vector<uint64_t>& words) { return Crc32c(words.data(), words.size() * sizeof(uint64_t)); }

// Writes a body under the sequence. Every word is stored with release order: none becomes visible before the odd sequence, and the
// even one not before all of them. (Release stores instead of a fence, because thread sanitizers do not understand fences.)
void StoreBody(const std::vector<uint64_t>& words, PageLayout* page) {
  const uint64_t sequence = LoadRelaxed(&page->sequence);
  StoreRelaxed(&page->sequence, sequence + 1);
  for (size_t i = 0; i < words.size(); ++i) StoreRelease(&page->body[i], words[i]);
  StoreRelease(&page->checksum, ChecksumOf(words));
  StoreRelease(&page->sequence, sequence + 2);
}

enum class Take { kWhole, kTorn, kGarbled };

// One try to take a consistent body that began at the even `sequence`.
Take TakeBody(const PageLayout* page, uint64_t sequence, std::vector<uint64_t>* words) {
  const uint64_t count = LoadAcquire(&page->body[kPageBodyEntryCount]);
  const bool fits = count <= kPageEntriesMax;
  uint64_t checksum = 0;
  if (fits) {
    words->resize(kPageBodyEntries + count * kPageEntryWords);
    for (size_t i = 0; i < words->size(); ++i) (*words)[i] = LoadAcquire(&page->body[i]);
    checksum = LoadAcquire(&page->checksum);
  }
  // Acquire loads above: none of them may be delayed past this one.
  if (LoadAcquire(&page->sequence) != sequence) return Take::kTorn;
  // The count was loaded twice; a writer that lies about the sequence could have changed it in between.
  if (!fits || (*words)[kPageBodyEntryCount] != count || ChecksumOf(*words) != checksum) return Take::kGarbled;
  return Take::kWhole;
}

}  // namespace

const PageEntry* PageCopy::Find(uint64_t node_hash, uint64_t nic_hash) const {
  const auto key = std::tie(node_hash, nic_hash);
  const auto found =
      std::lower_bound(entries.begin(), entries.end(), key, [](const PageEntry& entry, const auto& k) { return KeyOf(entry) < k; });
  return found != entries.end() && KeyOf(*found) == key ? &*found : nullptr;
}

const PageEntry* PageCopy::Theirs(const PageEntry* found, const std::string& first, const std::string& second) const {
  if (!tagged || (found == nullptr && displaced == 0)) return found;
  const uint64_t tag = TagOf(key, first, second);
  const auto tagged_so = [&](const PageEntry* entry) { return entry != nullptr && std::memcmp(entry->tag, &tag, sizeof(entry->tag)) == 0; };
  if (tagged_so(found)) return found;
  if (displaced == 0) return nullptr;
  found = Find(DisplacedHash(key, first), DisplacedHash(key, second));
  return tagged_so(found) ? found : nullptr;
}

const PageEntry* PageCopy::Find(const std::string& first, const std::string& second) const {
  return Theirs(Find(Fnv1a64(first), Fnv1a64(second)), first, second);
}

bool PageCopy::PathBroken(const std::string& node, const std::string& nic, const std::string& peer_node,
                          const std::string& peer_nic) const {
  const std::string here = node + "/" + nic;
  const std::string there = peer_node + "/" + peer_nic;
  const PageEntry* entry = node < peer_node ? Find(here, there) : Find(there, here);
  return entry != nullptr && entry->state == static_cast<uint8_t>(PlannedState::kFailed);
}

bool PageCopy::DrainedFor(const std::string& job, const std::string& node, const std::string& nic) const {
  return Find(node + "/" + nic, JobName(job)) != nullptr;
}

bool PageCopy::OnPurpose(const std::string& node, const std::string& nic) const {
  return Find(node + "/" + nic, kOnPurposeName) != nullptr;
}

PageCopy PageCopyOf(const Plan& plan, const SipKey& key, const std::string& own_node, std::vector<PageConflict>* conflicts) {
  PageCopy copy{plan.epoch, {}, key};
  const std::vector<bool> displaced = Displaced(plan, own_node, conflicts);
  std::vector<std::string> displaced_ends;  // mostly none
  copy.entries.reserve(plan.nics.size() + plan.broken_paths.size());
  size_t job_drains = 0;
  const auto add = [&](const std::string& first, const std::string& second, bool moved, PlannedState state, uint16_t weight_permille) {
    copy.entries.push_back(EntryOf(key, first, second, moved, state, weight_permille));
    copy.displaced += moved;
  };
  for (size_t at = 0; at < plan.nics.size(); ++at) {
    const PlannedNic& nic = plan.nics[at];
    if (displaced[at]) displaced_ends.push_back(nic.node + "/" + nic.nic);
    // A job has no use for the difference, and one that was built before these two would refuse the page.
    const bool as_failed = nic.state == PlannedState::kUncabled || nic.state == PlannedState::kDrainedNow;
    const PlannedState state = as_failed ? PlannedState::kFailed : nic.state;
    add(nic.node, nic.nic, displaced[at], state, nic.weight_permille);
    std::vector<uint64_t> hashes;
    for (const std::string& job : nic.drained_jobs) {
      if (job_drains++ >= kJobDrainsMax) break;
      // A node may name jobs of one hash too, of its own NIC.
      const uint64_t hash = JobHash(job);
      const bool again = std::find(hashes.begin(), hashes.end(), hash) != hashes.end();
      hashes.push_back(hash);
      add(nic.node + "/" + nic.nic, JobName(job), displaced[at] || again, PlannedState::kDrained, 0);
    }
  }
  const auto moved = [&](const std::string& end) {
    return std::find(displaced_ends.begin(), displaced_ends.end(), end) != displaced_ends.end();
  };
  for (const BrokenPath& path : plan.broken_paths) {
    const std::string from = path.node + "/" + path.nic, to = path.peer_node + "/" + path.peer_nic;
    add(from, to, moved(from) || moved(to), PlannedState::kFailed, 0);
  }
  // Last: without these a job counts a drill as a fault, and nothing else changes.
  for (size_t at = 0; at < plan.nics.size() && copy.entries.size() < kPageEntriesMax; ++at)
    if (plan.nics[at].on_purpose)
      add(plan.nics[at].node + "/" + plan.nics[at].nic, kOnPurposeName, displaced[at], PlannedState::kFailed, 0);
  std::sort(copy.entries.begin(), copy.entries.end(), [](const PageEntry& a, const PageEntry& b) { return KeyOf(a) < KeyOf(b); });
  return copy;
}

std::unique_ptr<PageWriter> PageWriter::Create(std::string* error) {
  int fd = -1;
  void* memory = nullptr;
  if (!MakeShared(kPage, &fd, &memory, error)) return nullptr;
  auto* const page = static_cast<PageLayout*>(memory);
  StoreRelaxed(&page->clock_offset_ns, static_cast<uint64_t>(OwnMonotonicOffset()));
  // A reader that comes before the first plan finds a sound page with nothing in it.
  if (getrandom(&page->key, sizeof(page->key), 0) != static_cast<ssize_t>(sizeof(page->key))) {
    *error = std::string("page: no random key: ") + std::strerror(errno);
    UnmapShared(kPage, fd, memory);
    return nullptr;
  }
  StoreBody(BodyOf(PageCopy{}), page);
  return std::unique_ptr<PageWriter>(new PageWriter(fd, memory));
}

PageWriter::~PageWriter() { UnmapShared(kPage, fd_, memory_); }

bool PageWriter::Publish(const Plan& plan, Nanos now, std::string* error, const std::string& own_node) {
  // A page belongs to one run of a daemon.
  if (published_ == Epoch{} ? plan.epoch == Epoch{} : !plan.epoch.LaterThan(published_)) {
    *error = "plan's epoch is not later than the published one";
    return false;
  }
  for (const PlannedNic& nic : plan.nics)
    if (nic.weight_permille > kFullWeightPermille) {
      *error = "plan gives " + nic.node + "/" + nic.nic + " a weight of " + std::to_string(nic.weight_permille) + " permille";
      return false;
    }
  const auto* const page = static_cast<const PageLayout*>(memory_);
  std::vector<PageConflict> conflicts;
  const PageCopy copy = PageCopyOf(plan, KeyIn(*page), own_node, &conflicts);
  if (copy.entries.size() > kPageEntriesMax) {
    *error = "plan has " + std::to_string(copy.entries.size()) + " NICs, broken paths and drains of jobs, a page holds " +
             std::to_string(kPageEntriesMax);
    return false;
  }
  if (!Ascending(copy.entries)) {
    *error = "plan names a NIC or a broken path twice";
    return false;
  }
  StoreBody(BodyOf(copy), static_cast<PageLayout*>(memory_));
  published_ = plan.epoch;
  conflicts_ = std::move(conflicts);
  Heartbeat(now);
  return true;
}

void PageWriter::Heartbeat(Nanos now) { StoreRelease(&static_cast<PageLayout*>(memory_)->heartbeat_ns, static_cast<uint64_t>(now)); }

void PageWriter::EndOnPurpose(Nanos now) {
  StoreRelease(&static_cast<PageLayout*>(memory_)->end_lease_until_ns, static_cast<uint64_t>(now + kPageEndLease));
  Heartbeat(now);
}

std::unique_ptr<PageReader> PageReader::Open(int fd, std::string* error) {
  void* memory = MapShared(kPage, fd, error);
  return memory == nullptr ? nullptr : std::unique_ptr<PageReader>(new PageReader(fd, memory));
}

PageReader::PageReader(int fd, void* memory)
    : fd_(fd),
      memory_(memory),
      to_writers_clock_(LoadRelaxed(&static_cast<const PageLayout*>(memory)->clock_offset_ns) -
                        static_cast<uint64_t>(OwnMonotonicOffset())) {}

PageReader::~PageReader() { UnmapShared(kPage, fd_, memory_); }

PageReader::Read PageReader::Refresh() {
  const auto* page = static_cast<const PageLayout*>(memory_);
  for (int attempt = 0; attempt < kReadTriesMax; ++attempt) {
    const uint64_t sequence = LoadAcquire(&page->sequence);
    if (sequence == sequence_) return Read::kUnchanged;
    if (sequence % 2 != 0) {
      sched_yield();  // the writer may have been interrupted on this very core
      continue;
    }
    const Take take = TakeBody(page, sequence, &words_);
    if (take == Take::kTorn) continue;
    PageCopy copy;
    if (take == Take::kGarbled || !CopyOf(words_, &copy)) break;
    const bool same = copy.epoch == copy_.epoch;
    if (!same && copy_.epoch != Epoch{} && !copy.epoch.LaterThan(copy_.epoch)) break;
    copy.tagged = std::max(page->version, page->newest) >= 3;
    copy.key = KeyIn(*page);
    sequence_ = sequence;
    if (same) return Read::kUnchanged;
    copy_ = std::move(copy);
    return Read::kNew;
  }
  ++refusals_;
  return Read::kRefused;
}

bool PageReader::Stale(Nanos now) const {
  const auto* page = static_cast<const PageLayout*>(memory_);
  // Unsigned: the difference is defined for any value of a foreign writer.
  const uint64_t writers_now = static_cast<uint64_t>(now) + to_writers_clock_;
  const uint64_t age = writers_now - LoadAcquire(&page->heartbeat_ns);
  const uint64_t limit = static_cast<uint64_t>(kPageStaleAfter);
  if (age <= limit || -age <= limit) return false;
  // No daemon asks to be believed for longer.
  return !ended() || LoadAcquire(&page->end_lease_until_ns) - writers_now > static_cast<uint64_t>(kPageEndLease);
}

bool PageReader::ended() const { return LoadAcquire(&static_cast<const PageLayout*>(memory_)->end_lease_until_ns) != 0; }

}  // namespace r2cc::plan
