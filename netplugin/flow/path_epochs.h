// Stores one path epoch for each chunk of a message. A message of one chunk, the usual case, needs no allocation.
#ifndef R2CC_NETPLUGIN_FLOW_PATH_EPOCHS_H_
#define R2CC_NETPLUGIN_FLOW_PATH_EPOCHS_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "netplugin/flow/types.h"

namespace r2cc::net {

class PathEpochs {
 public:
  PathEpochs() = default;
  PathEpochs(PathEpochs&& other) noexcept : size_(std::exchange(other.size_, 0)), one_(other.one_), many_(std::move(other.many_)) {}
  PathEpochs& operator=(PathEpochs&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    one_ = other.one_;
    many_ = std::move(other.many_);
    return *this;
  }

  // If the allocation fails, nothing changes.
  void Assign(size_t size, PathEpoch epoch) {
    many_ = size > 1 ? std::make_unique<PathEpoch[]>(size) : nullptr;
    size_ = size;
    std::fill(begin(), end(), epoch);
  }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  PathEpoch* begin() { return many_ != nullptr ? many_.get() : &one_; }
  PathEpoch* end() { return begin() + size_; }
  PathEpoch& operator[](size_t chunk) { return begin()[chunk]; }
  const PathEpoch& operator[](size_t chunk) const { return many_ != nullptr ? many_[chunk] : one_; }

 private:
  size_t size_ = 0;
  PathEpoch one_ = 0;
  std::unique_ptr<PathEpoch[]> many_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_PATH_EPOCHS_H_
