// A fuzzer's bytes as numbers and choices. Past the end everything is zero, so every input means something.
#ifndef R2CC_TESTS_FUZZ_INPUT_H_
#define R2CC_TESTS_FUZZ_INPUT_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace r2cc::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }
  std::span<const uint8_t> rest() const { return rest_; }

  template <std::integral T>
  T Take() {
    T value{};
    const std::span<const uint8_t> bytes = TakeBytes(sizeof(T));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  bool TakeBool() { return (Take<uint8_t>() & 1) != 0; }
  // 0..end-1 from one byte.
  size_t Below(size_t end) { return Take<uint8_t>() % end; }
  // A number that is small as often as it is huge: one byte says how many follow.
  uint64_t TakeNumber() {
    uint64_t value = 0;
    const std::span<const uint8_t> bytes = TakeBytes(Below(9));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  // At most `bytes`, as many as are left.
  std::span<const uint8_t> TakeBytes(size_t bytes) {
    const std::span<const uint8_t> taken = rest_.first(std::min(bytes, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::string TakeString(size_t bytes) {
    const std::span<const uint8_t> taken = TakeBytes(bytes);
    return std::string(taken.begin(), taken.end());
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace r2cc::fuzz

#endif  // R2CC_TESTS_FUZZ_INPUT_H_
