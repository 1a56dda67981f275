// RUN_DIR/rails: which NICs an operator has named to r2ccd. The daemon writes it; a job that is started without R2CC_RAILS takes its rails
// from it, so that both agree, and does not wait for the daemon. Pure.
//
//   r2cc rails 1
//   netns 4026531840
//   eth1
//   10.2.0.1
//   guid:0x0002c9030000abcd
#ifndef R2CC_BASE_CORE_RAILS_FILE_H_
#define R2CC_BASE_CORE_RAILS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace r2cc {

// Next to the attach socket.
constexpr char kRailsFileName[] = "rails";
// A reader takes no more.
constexpr size_t kRailsFileBytesMax = 4096;
constexpr size_t kRailsFileRailsMax = 32;

struct RailsFile {
  uint64_t netns_inode = 0;        // of the network namespace that they are in
  std::vector<std::string> rails;  // interfaces, addresses, and of InfiniBand ports without an interface "guid:0x" and 16 digits
};

std::string FormatRailsFile(const RailsFile& file);

// Nothing: it is none, or of a later version. Each rail is 1 to 47 printable characters without blanks, commas, ^, * and ?.
std::optional<RailsFile> ParseRailsFile(std::string_view text);

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_RAILS_FILE_H_
