// RUN_DIR/rails, from which a job takes its rails.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/core/check.h"
#include "base/core/rails_file.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace r2cc;
  r2cc::fuzz::Input input(data, size);
  const std::span<const uint8_t> bytes = input.rest();
  const auto file = ParseRailsFile({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!file.has_value()) return 0;
  R2CC_CHECK(file->rails.size() <= kRailsFileRailsMax);
  for (const std::string& rail : file->rails)
    R2CC_CHECK(!rail.empty() && rail.size() < 48 && rail.find_first_of(", ^*?\n") == std::string::npos);
  const auto again = ParseRailsFile(FormatRailsFile(*file));
  R2CC_CHECK(again.has_value() && again->netns_inode == file->netns_inode && again->rails == file->rails);
  return 0;
}
