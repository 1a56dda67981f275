// Counts the bytes of operator new, by account. Those with an alignment of their own are few, and left out.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/sim/charge.h"

namespace {

using r2cc::sim::Account;

// Before each block. A block is given back to the account that it was taken from.
struct alignas(std::max_align_t) Header {
  size_t bytes = 0;
  Account account = Account::kSimulation;
};

}  // namespace

void* operator new(size_t bytes) {
  void* const raw = std::malloc(sizeof(Header) + bytes);
  if (raw == nullptr) throw std::bad_alloc();
  auto* const header = new (raw) Header{bytes, r2cc::sim::charged};
  r2cc::sim::live_bytes[static_cast<size_t>(header->account)] += static_cast<int64_t>(bytes);
  return header + 1;
}

void operator delete(void* block) noexcept {
  if (block == nullptr) return;
  Header* const header = static_cast<Header*>(block) - 1;
  r2cc::sim::live_bytes[static_cast<size_t>(header->account)] -= static_cast<int64_t>(header->bytes);
  std::free(header);
}

void operator delete(void* block, size_t) noexcept { operator delete(block); }
