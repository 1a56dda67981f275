// Fixed-size strings in shared memory and packets.
#ifndef R2CC_PLAN_PAGE_TEXT_H_
#define R2CC_PLAN_PAGE_TEXT_H_

#include <cstddef>
#include <cstring>
#include <string_view>

namespace r2cc::plan {

// True if the field ends with a NUL inside its bounds and holds only printable ASCII before it: what comes from a job is printed in
// tables and logs and copied into messages that must be UTF-8.
template <size_t N>
bool SoundText(const char (&field)[N]) {
  for (char c : field) {
    if (c == '\0') return true;
    if (c < 0x20 || c > 0x7e) return false;
  }
  return false;
}

// Fills a field with `text`: cut to fit, NUL-terminated, the other bytes zero, and '?' for what is not printable ASCII, so that
// SoundText() holds afterwards.
template <size_t N>
void SetText(std::string_view text, char (&field)[N]) {
  std::memset(field, 0, N);
  for (size_t i = 0; i < text.size() && i + 1 < N; ++i) field[i] = text[i] < 0x20 || text[i] > 0x7e ? '?' : text[i];
}

}  // namespace r2cc::plan

#endif  // R2CC_PLAN_PAGE_TEXT_H_
