// Matches names with a pattern: * is any text, ? any one character.
#ifndef R2CC_BASE_CORE_GLOB_H_
#define R2CC_BASE_CORE_GLOB_H_

#include <string_view>

namespace r2cc {

// fnmatch(3) takes time without bounds for some patterns, and these come from outside. This takes at most the product of the two lengths.
constexpr bool GlobFits(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0;
  size_t star = std::string_view::npos;  // the last one that was met
  size_t taken = 0;                      // how much of the name was matched at the last star, which covers what lies between
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_GLOB_H_
