// Numbers out of bytes that somebody else has written, little-endian. Pure.
#ifndef R2CC_BASE_CORE_BYTE_READER_H_
#define R2CC_BASE_CORE_BYTE_READER_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace r2cc {

// The number at `offset`. REQUIRES: all of it lies within `bytes`.
template <std::integral T>
T NumberAt(std::span<const uint8_t> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Reads one after the other. Reads past the end yield zeros, or nothing, and make ok() false for good. The bytes are the caller's and must
// stay.
class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()) {}

  template <std::integral T>
  T Get() {
    const std::span<const uint8_t> raw = Take(sizeof(T));
    return raw.empty() ? T{} : NumberAt<T>(raw, 0);
  }
  // The next `length` bytes; none if there are fewer.
  std::span<const uint8_t> Take(size_t length) {
    if (bytes_.size() < length) {
      ok_ = false;
      return {};
    }
    const std::span<const uint8_t> taken = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    return taken;
  }
  // The same as text on one line: what is not printable ASCII is a '?'.
  std::string TakeText(size_t length) {
    const std::span<const uint8_t> raw = Take(length);
    std::string text(raw.begin(), raw.end());
    for (char& c : text)
      if (c < 0x20 || c > 0x7e) c = '?';
    return text;
  }
  // The bytes make no sense.
  void Fail() { ok_ = false; }

  size_t left() const { return bytes_.size(); }
  bool ok() const { return ok_; }
  // All was read, and there was all that was asked for.
  bool Done() const { return ok_ && bytes_.empty(); }

 private:
  std::span<const uint8_t> bytes_;
  bool ok_ = true;
};

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_BYTE_READER_H_
