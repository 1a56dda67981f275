// Checks names in NODE/NIC: no slash, no space, nothing that a shell or a terminal would take for something else, and short enough for
// the fixed fields of the page's and the attach socket's formats.
#ifndef R2CC_BASE_NAMES_H_
#define R2CC_BASE_NAMES_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace r2cc {

constexpr size_t kNodeNameBytesMax = 63;
constexpr size_t kNicNameBytesMax = 23;
constexpr size_t kNicsPerNodeMax = 64;
// NICs that a node may add to the view and the page, unless the configuration allows more.
constexpr size_t kNicsPerNodeDefault = 16;

inline bool IsName(std::string_view name, size_t bytes_max) {
  return !name.empty() && name.size() <= bytes_max && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == ':' ||
           c == '@';
  });
}
inline bool IsNodeName(std::string_view name) { return IsName(name, kNodeNameBytesMax); }
// Accepts a value of R2CC_JOB: printable, neither a blank nor a slash.
inline bool IsJobName(std::string_view name) {
  return !name.empty() && name.size() <= kNodeNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~' && c != '/'; });
}
inline bool IsNicName(std::string_view name) { return IsName(name, kNicNameBytesMax); }

inline std::string NameRule(size_t bytes_max) { return "letters, digits and -_.:@, at most " + std::to_string(bytes_max); }

// Bytes from a job or another daemon as text for logs, tables and terminals: up to the first NUL, every byte outside printable ASCII as
// '?'.
inline std::string CleanText(const char* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size && bytes[i] != '\0'; ++i) text.push_back(bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?');
  return text;
}

}  // namespace r2cc

#endif  // R2CC_BASE_NAMES_H_
