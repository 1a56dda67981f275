// Counts the bytes of operator new, by account. Those with an alignment of their own are few, and left out. The form that does not throw is
// here, too: the address sanitizer's own would not go with the delete below.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "tests/sim/charge.h"

namespace {

// Before each block. A block is given back to the account that it was taken from.
struct alignas(std::max_align_t) Header {
  int64_t bytes = 0;
  std::atomic<int64_t>* account = nullptr;
};

}  // namespace

void* operator new(size_t bytes) {
  void* const raw = std::malloc(sizeof(Header) + bytes);
  if (raw == nullptr) throw std::bad_alloc();
  auto* const header = new (raw) Header{.bytes = static_cast<int64_t>(bytes)};
  if (r2cc::sim::accounts != nullptr) {
    header->account = &(*r2cc::sim::accounts)[static_cast<size_t>(r2cc::sim::charged)];
    *header->account += header->bytes;
  }
  return header + 1;
}

void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  Header* const header = static_cast<Header*>(block) - 1;
  if (header->account != nullptr) *header->account -= header->bytes;
  std::free(header);
}

void operator delete(void* block, size_t) noexcept { operator delete(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { operator delete(block); }
