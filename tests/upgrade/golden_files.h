// Reads the frozen bytes of the last release, and compares bytes with them.
#ifndef R2CC_TESTS_UPGRADE_GOLDEN_FILES_H_
#define R2CC_TESTS_UPGRADE_GOLDEN_FILES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "netplugin/link/frame.h"
#include "tests/upgrade/golden_values.h"

namespace r2cc::golden {

inline std::string Golden(const std::string& name) {
  std::ifstream file(std::string("tests/upgrade/golden/") + kOldRelease + "/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline net::Bytes GoldenBytes(const std::string& name) {
  const std::string text = Golden(name);
  return {text.begin(), text.end()};
}

inline std::string Text(const net::Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

template <typename T>
std::string TextOf(const T& value, size_t bytes = sizeof(T)) {
  return {reinterpret_cast<const char*>(&value), bytes};
}

// The positions where two byte strings of one length differ.
inline std::vector<size_t> Differences(const std::string& one, const std::string& other) {
  std::vector<size_t> at;
  EXPECT_EQ(one.size(), other.size());
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    if (one[i] != other[i]) at.push_back(i);
  return at;
}

// A field of a layout: from `begin` up to but not including `end`.
struct Field {
  size_t begin;
  size_t end;
};
#define R2CC_GOLDEN_FIELD(Type, field) (::r2cc::golden::Field{offsetof(Type, field), offsetof(Type, field) + sizeof(Type::field)})

// True if `ours` and `old` differ in these fields at most.
inline testing::AssertionResult SameBut(const std::string& ours, const std::string& old, const std::vector<Field>& fields) {
  for (const size_t at : Differences(ours, old))
    if (std::none_of(fields.begin(), fields.end(), [at](const Field& field) { return at >= field.begin && at < field.end; }))
      return testing::AssertionFailure() << "they differ at byte " << at;
  return testing::AssertionSuccess();
}

// The newest version of two ranges, by the rule of every release; 0: they have none in common.
inline uint32_t Negotiated(uint32_t least, uint32_t newest, uint32_t other_least, uint32_t other_newest) {
  const uint32_t common = std::min(newest, other_newest);
  return common >= std::max(least, other_least) ? common : 0;
}

}  // namespace r2cc::golden

#endif  // R2CC_TESTS_UPGRADE_GOLDEN_FILES_H_
