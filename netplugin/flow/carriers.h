// One carrier per chunk of a message. Most messages are one chunk, and those cost no memory of their own.
#ifndef R2CC_NETPLUGIN_FLOW_CARRIERS_H_
#define R2CC_NETPLUGIN_FLOW_CARRIERS_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "netplugin/flow/types.h"

namespace r2cc::net {

class Carriers {
 public:
  Carriers() = default;
  Carriers(Carriers&& other) noexcept : size_(std::exchange(other.size_, 0)), one_(other.one_), many_(std::move(other.many_)) {}
  Carriers& operator=(Carriers&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    one_ = other.one_;
    many_ = std::move(other.many_);
    return *this;
  }

  // Without memory it stays as it was.
  void Assign(size_t size, Carrier carrier) {
    many_ = size > 1 ? std::make_unique<Carrier[]>(size) : nullptr;
    size_ = size;
    std::fill(begin(), end(), carrier);
  }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  Carrier* begin() { return many_ != nullptr ? many_.get() : &one_; }
  Carrier* end() { return begin() + size_; }
  Carrier& operator[](size_t chunk) { return begin()[chunk]; }
  const Carrier& operator[](size_t chunk) const { return many_ != nullptr ? many_[chunk] : one_; }

 private:
  size_t size_ = 0;
  Carrier one_ = 0;
  std::unique_ptr<Carrier[]> many_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_CARRIERS_H_
