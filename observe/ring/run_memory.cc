#include "observe/ring/run_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>
#include <type_traits>

namespace r2cc::observe {
namespace {

constexpr const char* kRemedy = "use the reader of the producer's release";
constexpr std::string_view kPrefix = "/memfd:r2cc-taps", kSuffix = " (deleted)";

SharedKind ControlKind(const char* name) {
  return {name, kControlMagic, kRingVersion, kRingVersion, sizeof(ControlMemory), Writable::kByMakerOnly, 0, "libr2cc-observe", kRemedy};
}
SharedKind RingKind(const char* name, size_t bytes, size_t most) {
  return {name, kRingMagic, kRingVersion, kRingVersion, bytes, Writable::kByMakerOnly, most, "libr2cc-observe", kRemedy};
}
SharedKind CursorsKind(const char* name) {
  return {name, kCursorsMagic, kRingVersion, kRingVersion, sizeof(CursorsMemory), Writable::kByBoth, 0, "libr2cc-observe", kRemedy};
}

struct Directory {
  explicit Directory(const std::string& path) : stream(opendir(path.c_str())) {}
  ~Directory() {
    if (stream != nullptr) closedir(stream);
  }
  // The next name that is a number; -1: there is none.
  int NextNumber() {
    while (stream != nullptr) {
      const dirent* const entry = readdir(stream);
      if (entry == nullptr) return -1;
      char* end = nullptr;
      const long number = std::strtol(entry->d_name, &end, 10);
      if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) && *end == '\0') return static_cast<int>(number);
    }
    return -1;
  }
  DIR* stream;
};

std::string LinkOf(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t bytes = readlink(path.c_str(), target, sizeof(target));
  return bytes > 0 ? std::string(target, static_cast<size_t>(bytes)) : "";
}

int OpenAt(const FoundRun& found, int fd, int flags, const std::string& proc) {
  const std::string path = proc + "/" + std::to_string(found.holder_pid) + "/fd/" + std::to_string(fd);
  return open(path.c_str(), flags | O_CLOEXEC);
}

template <typename T>
bool ReadFrom(const std::string& path, T* value, size_t bytes = sizeof(T)) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool read = pread(fd, value, bytes, 0) == static_cast<ssize_t>(bytes);
  close(fd);
  return read;
}

// The memories that one process holds, by identity.
void FindIn(int pid, const std::string& run, const std::string& proc, std::map<uint64_t, FoundRun>* found) {
  const std::string folder = proc + "/" + std::to_string(pid) + "/fd";
  std::map<uint64_t, FoundRun> here;
  Directory descriptors(folder);
  for (int fd = descriptors.NextNumber(); fd >= 0; fd = descriptors.NextNumber()) {
    const std::string path = folder + "/" + std::to_string(fd);
    const std::string link = LinkOf(path);
    std::string_view name = link;
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    name.remove_prefix(kPrefix.size());
    name.remove_suffix(kSuffix.size());
    const size_t colon = name.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view what = name.substr(0, colon), its = name.substr(colon + 1);
    if (!CheckRunName(its).empty() || (!run.empty() && its != run)) continue;
    RingStart start{};  // all three begin alike
    if (!ReadFrom(path, &start, offsetof(RingStart, id) + sizeof(start.id)) || start.id == 0) continue;
    FoundRun& one = here[start.id];
    one.id = start.id;
    one.run = its;
    one.holder_pid = pid;
    if (what.empty() && start.header.magic == kControlMagic) {
      uint64_t words[offsetof(ControlMemory, run) / 8];
      if (!ReadFrom(path, &words)) continue;
      one.control_fd = fd;
      one.producer_pid = words[offsetof(ControlMemory, pid) / 8];
      one.rank = static_cast<uint32_t>(words[offsetof(ControlMemory, rank) / 8]);
    } else if (what == "-ring" && start.header.magic == kRingMagic) {
      one.ring_fd = fd;
    } else if (what == "-cursors" && start.header.magic == kCursorsMagic) {
      one.cursors_fd = fd;
    }
  }
  for (const auto& [id, one] : here) {
    if (one.control_fd < 0 || one.ring_fd < 0) continue;
    const auto before = found->find(id);
    if (before == found->end() || one.producer_pid == static_cast<uint64_t>(pid)) (*found)[id] = one;
  }
}

}  // namespace

std::string CheckRunName(std::string_view run) {
  const bool sound = !run.empty() && run.size() <= kRunNameBytesMax && std::all_of(run.begin(), run.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
  return sound ? "" : "a run's name has 1 to 64 of letters, digits, '.', '_' and '-'";
}

std::unique_ptr<RunMemory> RunMemory::Make(const std::string& run, uint32_t rank, uint64_t ring_bytes, std::string* error) {
  *error = CheckRunName(run);
  if (!error->empty()) return nullptr;
  if (ring_bytes < kRingBytesLeast || ring_bytes > kRingBytesMost) {
    *error = "the host's ring would have " + std::to_string(ring_bytes) + " bytes; it has " + std::to_string(kRingBytesLeast) + " to " +
             std::to_string(kRingBytesMost);
    return nullptr;
  }
  std::unique_ptr<RunMemory> memory(new RunMemory());
  memory->ring_memory_bytes_ = sizeof(RingStart) + RoundUp(ring_bytes, kRecordAlignment);
  const std::string control = "taps:" + run, ring = "taps-ring:" + run, cursors = "taps-cursors:" + run;
  const auto make = [&](const SharedKind& kind, int* fd, auto** at) {
    void* mapped = nullptr;
    if (!MakeShared(kind, fd, &mapped, error)) return false;
    *at = static_cast<std::remove_reference_t<decltype(*at)>>(mapped);
    fchmod(*fd, 0600);
    return true;
  };
  if (!make(ControlKind(control.c_str()), &memory->control_fd_, &memory->control_) ||
      !make(RingKind(ring.c_str(), memory->ring_memory_bytes_, 0), &memory->ring_fd_, &memory->ring_) ||
      !make(CursorsKind(cursors.c_str()), &memory->cursors_fd_, &memory->cursors_))
    return nullptr;
  uint64_t id = 0;
  while (id == 0)
    if (getrandom(&id, sizeof(id), 0) != sizeof(id)) id = 0;
  ControlMemory* const words = memory->control_;
  words->ring_bytes = memory->ring().size();
  words->pid = static_cast<uint64_t>(getpid());
  words->rank = rank;
  std::memcpy(words->run, run.data(), run.size());
  for (uint64_t& generation : words->generation) generation = 1;
  memory->ring_->id = memory->cursors_->id = id;
  StoreRelease(&words->id, id);
  return memory;
}

std::unique_ptr<RunMemory> RunMemory::Open(int control_fd, int ring_fd, int cursors_fd, std::string* error) {
  std::unique_ptr<RunMemory> memory(new RunMemory());
  const auto map = [&](const SharedKind& kind, int fd, int* kept, auto** at, size_t* bytes) {
    void* const mapped = MapShared(kind, fd, error, bytes);
    if (mapped == nullptr) return false;
    *kept = fd;
    *at = static_cast<std::remove_reference_t<decltype(*at)>>(mapped);
    return true;
  };
  size_t unused = 0;
  const bool control = map(ControlKind("control"), control_fd, &memory->control_fd_, &memory->control_, &unused);
  const bool ring = control && map(RingKind("ring", sizeof(RingStart) + kRingBytesLeast, sizeof(RingStart) + kRingBytesMost), ring_fd,
                                   &memory->ring_fd_, &memory->ring_, &memory->ring_memory_bytes_);
  if (!control && ring_fd >= 0) close(ring_fd);
  if (!ring) {
    if (cursors_fd >= 0) close(cursors_fd);
    return nullptr;
  }
  if (cursors_fd >= 0 && !map(CursorsKind("cursors"), cursors_fd, &memory->cursors_fd_, &memory->cursors_, &unused)) return nullptr;
  const uint64_t id = LoadAcquire(&memory->control_->id);
  if (id == 0 || id != memory->ring_->id || (memory->cursors_ != nullptr && id != LoadRelaxed(&memory->cursors_->id))) {
    *error = "control, ring and cursors are not of one producer";
    return nullptr;
  }
  if (memory->ring().size() % kRecordAlignment != 0 || memory->control_->ring_bytes != memory->ring().size()) {
    *error = "the ring has " + std::to_string(memory->ring().size()) + " bytes, and its producer says " +
             std::to_string(memory->control_->ring_bytes);
    return nullptr;
  }
  return memory;
}

RunMemory::~RunMemory() {
  if (control_ != nullptr) UnmapShared(ControlKind(""), control_fd_, control_);
  if (ring_ != nullptr) UnmapShared(RingKind("", 0, 0), ring_fd_, ring_, ring_memory_bytes_);
  if (cursors_ != nullptr) UnmapShared(CursorsKind(""), cursors_fd_, cursors_);
}

std::string RunMemory::run() const {
  char name[sizeof(control_->run)];
  std::memcpy(name, control_->run, sizeof(name));
  const std::string run(name, strnlen(name, sizeof(name)));
  return CheckRunName(run).empty() ? run : "?";
}

std::vector<FoundRun> FindRuns(const std::string& run, const std::string& proc) {
  std::map<uint64_t, FoundRun> found;
  Directory processes(proc);
  for (int pid = processes.NextNumber(); pid >= 0; pid = processes.NextNumber()) FindIn(pid, run, proc, &found);
  std::vector<FoundRun> sorted;
  for (const auto& [id, one] : found) sorted.push_back(one);
  std::sort(sorted.begin(), sorted.end(), [](const FoundRun& a, const FoundRun& b) {
    return std::tie(a.run, a.rank, a.producer_pid, a.id) < std::tie(b.run, b.rank, b.producer_pid, b.id);
  });
  return sorted;
}

std::unique_ptr<RunMemory> OpenFound(const FoundRun& found, const std::string& proc, std::string* error) {
  const int control = OpenAt(found, found.control_fd, O_RDONLY, proc), ring = OpenAt(found, found.ring_fd, O_RDONLY, proc);
  const int cursors = found.cursors_fd < 0 ? -1 : OpenAt(found, found.cursors_fd, O_RDWR, proc);
  if (control < 0 || ring < 0) {
    *error = "run " + found.run + ": process " + std::to_string(found.holder_pid) +
             " has ended, or may not be looked into: " + std::strerror(errno);
    for (int fd : {control, ring, cursors})
      if (fd >= 0) close(fd);
    return nullptr;
  }
  return RunMemory::Open(control, ring, cursors, error);
}

}  // namespace r2cc::observe
