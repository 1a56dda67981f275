#include "plan/page/page.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "base/core/hash.h"
#include "plan/page/clock_offset.h"
#include "plan/page/page_layout.h"
#include "plan/page/shared_memory.h"

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

PageEntry EntryOf(const std::string& first, const std::string& second, NicState state, uint16_t weight_permille) {
  PageEntry entry{};
  entry.node_hash = Fnv1a64(first);
  entry.nic_hash = Fnv1a64(second);
  entry.weight_permille = weight_permille;
  entry.state = static_cast<uint8_t>(state);
  return entry;
}

std::vector<uint64_t> BodyOf(const PageCopy& copy) {
  std::vector<uint64_t> words(kPageBodyEntries + copy.entries.size() * kPageEntryWords);
  words[kPageBodyIncarnation] = copy.epoch.incarnation;
  words[kPageBodyEpochCounter] = copy.epoch.counter;
  words[kPageBodyEntryCount] = copy.entries.size();
  if (!copy.entries.empty()) std::memcpy(&words[kPageBodyEntries], copy.entries.data(), copy.entries.size() * sizeof(PageEntry));
  return words;
}

// The inverse, for words whose count was clamped and whose checksum is right. False if they are not a plan all the same.
bool CopyOf(const std::vector<uint64_t>& words, PageCopy* copy) {
  copy->epoch.incarnation = words[kPageBodyIncarnation];
  copy->epoch.counter = words[kPageBodyEpochCounter];
  copy->entries.resize((words.size() - kPageBodyEntries) / kPageEntryWords);
  if (!copy->entries.empty()) std::memcpy(copy->entries.data(), &words[kPageBodyEntries], copy->entries.size() * sizeof(PageEntry));
  for (const PageEntry& entry : copy->entries)
    if (entry.weight_permille > kFullWeightPermille || entry.state > static_cast<uint8_t>(NicState::kDrained)) return false;
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

bool PageCopy::PathBroken(const std::string& node, const std::string& nic, const std::string& peer_node,
                          const std::string& peer_nic) const {
  const uint64_t here = Fnv1a64(node + "/" + nic);
  const uint64_t there = Fnv1a64(peer_node + "/" + peer_nic);
  const PageEntry* entry = node < peer_node ? Find(here, there) : Find(there, here);
  return entry != nullptr && entry->state == static_cast<uint8_t>(NicState::kFailed);
}

bool PageCopy::DrainedFor(const std::string& job, const std::string& node, const std::string& nic) const {
  return Find(Fnv1a64(node + "/" + nic), JobHash(job)) != nullptr;
}

PageCopy PageCopyOf(const Plan& plan) {
  PageCopy copy{plan.epoch, {}};
  copy.entries.reserve(plan.nics.size() + plan.broken_paths.size());
  size_t job_drains = 0;
  for (const PlannedNic& nic : plan.nics) {
    // A job has no use for the difference, and one that was built before these two would refuse the page.
    const bool as_failed = nic.state == NicState::kUncabled || nic.state == NicState::kDrainedNow;
    const NicState state = as_failed ? NicState::kFailed : nic.state;
    copy.entries.push_back(EntryOf(nic.node, nic.nic, state, nic.weight_permille));
    for (const std::string& job : nic.drained_jobs) {
      if (job_drains++ >= kJobDrainsMax) break;
      copy.entries.push_back(EntryOf(nic.node + "/" + nic.nic, "job " + job, NicState::kDrained, 0));
    }
  }
  for (const BrokenPath& path : plan.broken_paths)
    copy.entries.push_back(EntryOf(path.node + "/" + path.nic, path.peer_node + "/" + path.peer_nic, NicState::kFailed, 0));
  std::sort(copy.entries.begin(), copy.entries.end(), [](const PageEntry& a, const PageEntry& b) { return KeyOf(a) < KeyOf(b); });
  return copy;
}

std::unique_ptr<PageWriter> PageWriter::Create(std::string* error) {
  int fd = -1;
  void* memory = nullptr;
  if (!MakeShared(kPage, &fd, &memory, error)) return nullptr;
  StoreRelaxed(&static_cast<PageLayout*>(memory)->clock_offset_ns, static_cast<uint64_t>(OwnMonotonicOffset()));
  // A reader that comes before the first plan finds a sound page with nothing in it.
  StoreBody(BodyOf(PageCopy{}), static_cast<PageLayout*>(memory));
  return std::unique_ptr<PageWriter>(new PageWriter(fd, memory));
}

PageWriter::~PageWriter() { UnmapShared(kPage, fd_, memory_); }

bool PageWriter::Publish(const Plan& plan, Nanos now, std::string* error) {
  // A page is one life's.
  if (published_ == Epoch{} ? plan.epoch == Epoch{} : !plan.epoch.LaterThan(published_)) {
    *error = "plan's epoch is not later than the published one";
    return false;
  }
  for (const PlannedNic& nic : plan.nics)
    if (nic.weight_permille > kFullWeightPermille) {
      *error = "plan gives " + nic.node + "/" + nic.nic + " a weight of " + std::to_string(nic.weight_permille) + " permille";
      return false;
    }
  const PageCopy copy = PageCopyOf(plan);
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
  Heartbeat(now);
  return true;
}

void PageWriter::Heartbeat(Nanos now) { StoreRelease(&static_cast<PageLayout*>(memory_)->heartbeat_ns, static_cast<uint64_t>(now)); }

void PageWriter::LastWord(Nanos now) {
  StoreRelease(&static_cast<PageLayout*>(memory_)->last_word_until_ns, static_cast<uint64_t>(now + kPageLastWord));
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
  // Without signs: whatever a foreign writer put there, the difference is defined.
  const uint64_t writers_now = static_cast<uint64_t>(now) + to_writers_clock_;
  const uint64_t age = writers_now - LoadAcquire(&page->heartbeat_ns);
  const uint64_t limit = static_cast<uint64_t>(kPageStaleAfter);
  if (age <= limit || -age <= limit) return false;
  // No daemon asks to be believed for longer.
  return !ended() || LoadAcquire(&page->last_word_until_ns) - writers_now > static_cast<uint64_t>(kPageLastWord);
}

bool PageReader::ended() const { return LoadAcquire(&static_cast<const PageLayout*>(memory_)->last_word_until_ns) != 0; }

}  // namespace r2cc::plan
