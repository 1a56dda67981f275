// Sealed memfds: one process makes them, another checks them before it maps them.
#ifndef R2CC_BASE_CORE_SHARED_MEMORY_H_
#define R2CC_BASE_CORE_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace r2cc {

// The beginning of each kind of shared memory. Written once, before the memory is handed out. A reader reads memory of any version
// from `version`, the oldest whose rules read it, to `newest`. A `newest` below `version` means `version` only.
struct SharedHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t newest;
};
static_assert(sizeof(SharedHeader) == 16);

enum class Writable {
  kByMakerOnly,  // SHRINK, GROW, FUTURE_WRITE, SEAL
  kByBoth,       // SHRINK, GROW, SEAL
};

struct SharedKind {
  const char* name;  // for error lines, and of the memfd behind "r2cc-": "page", "ring"
  uint64_t magic;
  // The rules of each of these versions read what this release writes, and it reads what any of them writes.
  uint32_t version_least;
  uint32_t version;
  size_t bytes;
  Writable writable;
  size_t bytes_most = 0;  // a reader takes any size from `bytes` to this; 0: only `bytes`
  // For error lines.
  const char* maker = "r2ccd";
  const char* remedy = "upgrade r2ccd or the plugin";
};

// Makes zeroed memory of `kind.bytes` that begins with the header of `kind`, maps it for writing and seals it. False and a line in `error`
// if the kernel refuses; nothing is left behind then.
bool MakeShared(const SharedKind& kind, int* fd, void** memory, std::string* error);

// The newest version whose rules both `header`'s writer and this release know; 0: there is none.
uint32_t CommonVersion(const SharedKind& kind, const SharedHeader& header);

// Checks header, size and seals of a descriptor that somebody handed over, then maps it (for writing if both may). Takes ownership
// of `fd`: closes it on failure. Null and one line in `error` if anything is not as it must be. `bytes`, if given, gets the size.
void* MapShared(const SharedKind& kind, int fd, std::string* error, size_t* bytes = nullptr);

// Undoes either. `bytes`: the size that MapShared() gave; 0: the kind's.
void UnmapShared(const SharedKind& kind, int fd, void* memory, size_t bytes = 0);

// All words that both sides touch go through these. They are lock-free on every 64-bit Linux.
inline uint64_t LoadAcquire(const uint64_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
inline uint64_t LoadRelaxed(const uint64_t* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
inline void StoreRelease(uint64_t* word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELEASE); }
inline void StoreRelaxed(uint64_t* word, uint64_t value) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_SHARED_MEMORY_H_
