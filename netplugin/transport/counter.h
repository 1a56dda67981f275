// Counts under some lock; any thread reads the count.
#ifndef R2CC_NETPLUGIN_TRANSPORT_COUNTER_H_
#define R2CC_NETPLUGIN_TRANSPORT_COUNTER_H_

#include <atomic>
#include <cstdint>

namespace r2cc::net {

class Counter {
 public:
  Counter() = default;
  Counter(const Counter& other) : value_(other.value()) {}
  Counter& operator=(const Counter&) = delete;
  void operator+=(uint64_t more) { value_.fetch_add(more, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COUNTER_H_
