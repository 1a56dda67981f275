// Writes a range of protocol versions for people. Pure.
#ifndef R2CC_BASE_CORE_VERSION_RANGE_H_
#define R2CC_BASE_CORE_VERSION_RANGE_H_

#include <cstdint>
#include <string>

namespace r2cc {

// "4 to 5"; "5" where the range is one version.
inline std::string VersionRange(uint32_t least, uint32_t newest) {
  return std::to_string(least) + (newest == least ? "" : " to " + std::to_string(newest));
}

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_VERSION_RANGE_H_
