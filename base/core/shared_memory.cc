#include "base/core/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/core/version_range.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1; older C libraries do not name it
#endif

namespace r2cc {
namespace {

int SealsOf(Writable writable) {
  const int fixed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  return writable == Writable::kByMakerOnly ? fixed | F_SEAL_FUTURE_WRITE : fixed;
}

std::string Because(const SharedKind& kind, const char* what) { return std::string(kind.name) + ": " + what + ": " + std::strerror(errno); }

std::string CheckHandedOver(const SharedKind& kind, int fd, size_t* bytes) {
  const std::string name = kind.name;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return name + ": the descriptor is not a sealed memfd";
  SharedHeader header{};
  // The version is judged before the size: a later version may well have another size, and the line should name the true cause.
  if (pread(fd, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header))) return name + " is too short to have a header";
  if (header.magic != kind.magic) return name + " has a foreign magic number: not made by " + kind.maker;
  if (CommonVersion(kind, header) == 0)
    return name + " version " + VersionRange(header.version, std::max(header.version, header.newest)) + ", this release reads " +
           VersionRange(kind.version_least, kind.version) + ": " + kind.remedy;
  struct stat status {};
  if (fstat(fd, &status) != 0) return Because(kind, "fstat");
  const size_t most = std::max(kind.bytes, kind.bytes_most);
  const auto size = static_cast<size_t>(std::max<off_t>(status.st_size, 0));
  if (!S_ISREG(status.st_mode) || size < kind.bytes || size > most)
    return name + " has " + std::to_string(status.st_size) + " bytes instead of " + std::to_string(kind.bytes) +
           (most > kind.bytes ? " to " + std::to_string(most) : "");
  *bytes = size;
  // Without these seals its maker could cut it under our mapping (SIGBUS), or any other job could write into it.
  const int wanted = SealsOf(kind.writable);
  if ((seals & wanted) != wanted) return name + " is not sealed: refused";
  return "";
}

}  // namespace

uint32_t CommonVersion(const SharedKind& kind, const SharedHeader& header) {
  const uint32_t newest = std::min(std::max(header.version, header.newest), kind.version);
  return newest >= std::max(header.version, kind.version_least) ? newest : 0;
}

bool MakeShared(const SharedKind& kind, int* fd, void** memory, std::string* error) {
  const std::string label = std::string("r2cc-") + kind.name;
  const int made = memfd_create(label.c_str(), MFD_ALLOW_SEALING | MFD_CLOEXEC);
  if (made < 0) {
    *error = Because(kind, "memfd_create");
    return false;
  }
  if (ftruncate(made, static_cast<off_t>(kind.bytes)) != 0) {
    *error = Because(kind, "ftruncate");
    close(made);
    return false;
  }
  void* mapped = mmap(nullptr, kind.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
  if (mapped == MAP_FAILED) {
    *error = Because(kind, "mmap");
    close(made);
    return false;
  }
  const SharedHeader header{kind.magic, kind.version_least, kind.version};
  std::memcpy(mapped, &header, sizeof(header));
  // After the mapping: F_SEAL_FUTURE_WRITE forbids every later writable one, also ours.
  if (fcntl(made, F_ADD_SEALS, SealsOf(kind.writable)) != 0) {
    *error = Because(kind, "sealing it (F_SEAL_FUTURE_WRITE needs Linux 5.1 or later)");
    munmap(mapped, kind.bytes);
    close(made);
    return false;
  }
  *fd = made;
  *memory = mapped;
  return true;
}

void* MapShared(const SharedKind& kind, int fd, std::string* error, size_t* bytes) {
  size_t size = 0;
  *error = CheckHandedOver(kind, fd, &size);
  if (error->empty()) {
    const int protection = kind.writable == Writable::kByBoth ? PROT_READ | PROT_WRITE : PROT_READ;
    void* mapped = mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED) {
      if (bytes != nullptr) *bytes = size;
      return mapped;
    }
    *error = Because(kind, "mmap");
  }
  if (fd >= 0) close(fd);
  return nullptr;
}

void UnmapShared(const SharedKind& kind, int fd, void* memory, size_t bytes) {
  munmap(memory, bytes == 0 ? kind.bytes : bytes);
  close(fd);
}

}  // namespace r2cc
