#include "netplugin/transport/bounce.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace r2cc::net {
namespace {

// Registration pins whole pages, and a fork may leave them out of the child: what else lies there would be missing.
uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

BouncePool::Piece BouncePool::Take(uint64_t bytes, std::string* error) {
  const uint64_t size = std::bit_ceil(std::max(bytes, PageBytes()));
  const auto size_class = static_cast<size_t>(std::countr_zero(size));
  {
    const MutexLock lock(mutex_);
    if (std::vector<Piece>& free = free_[size_class]; !free.empty()) {
      Piece piece = std::move(free.back());
      free.pop_back();
      return piece;
    }
  }
  Piece piece;
  piece.bytes.reset(static_cast<std::byte*>(std::aligned_alloc(PageBytes(), size)));
  piece.size_class = size_class;
  if (piece.bytes == nullptr) {
    *error = "R2CC: no memory for a bounce buffer of " + std::to_string(size) + " bytes";
    return {};
  }
  piece.memory = table_->Register({.kind = MemoryKind::kHost, .base = piece.bytes.get(), .bytes = size}, error);
  return piece.memory != nullptr ? std::move(piece) : Piece{};
}

void BouncePool::GiveBack(Piece piece) {
  const MutexLock lock(mutex_);
  free_[piece.size_class].push_back(std::move(piece));
}

Bounce::~Bounce() {
  for (Posted& posted : posted_)
    if (posted.piece.bytes != nullptr) pool_->GiveBack(std::move(posted.piece));
}

Buffer Bounce::Post(uint64_t number, const Buffer& buffer, uint64_t bytes, std::string* error) {
  Posted& posted = posted_[number % kRequestsMax];
  posted.piece = pool_->Take(bytes, error);
  if (posted.piece.bytes == nullptr) return {};
  posted.job = buffer.data;
  posted.gpu = buffer.is_device() ? buffer.memory->gpu : -1;
  if (!receives_ && !Copy(posted, posted.piece.bytes.get(), buffer.data, bytes, error)) return {};
  return {posted.piece.bytes.get(), posted.piece.memory};
}

bool Bounce::Copy(const Posted& posted, void* to, const void* from, uint64_t bytes, std::string* error) const {
  if (posted.gpu >= 0) return pool_->gpu()->Copy(posted.gpu, to, from, bytes, error);
  std::memcpy(to, from, bytes);
  return true;
}

uint64_t Bounce::Finish(uint64_t done_through, const std::array<uint64_t, kRequestsMax>& sizes, std::string* error) {
  for (; finished_ < done_through; ++finished_) {
    Posted& posted = posted_[finished_ % kRequestsMax];
    if (posted.piece.bytes == nullptr) continue;
    if (receives_ && !Copy(posted, posted.job, posted.piece.bytes.get(), sizes[finished_ % kRequestsMax], error)) break;
    pool_->GiveBack(std::move(posted.piece));
  }
  return finished_;
}

}  // namespace r2cc::net
