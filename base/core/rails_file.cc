#include "base/core/rails_file.h"

#include <algorithm>
#include <charconv>

namespace r2cc {
namespace {

constexpr std::string_view kBegin = "r2cc rails 1";
constexpr std::string_view kNetns = "netns ";
// The longest numeric IP address.
constexpr size_t kRailBytesMax = 47;

bool IsRail(std::string_view text) {
  return !text.empty() && text.size() <= kRailBytesMax && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7f && std::string_view(",^*?").find(c) == std::string_view::npos;
  });
}

// The next line; nothing at the end, or where no newline ends it.
std::optional<std::string_view> TakeLine(std::string_view* text) {
  const size_t end = text->find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return line;
}

}  // namespace

std::string FormatRailsFile(const RailsFile& file) {
  std::string text = std::string(kBegin) + "\n" + std::string(kNetns) + std::to_string(file.netns_inode) + "\n";
  for (const std::string& rail : file.rails) text += rail + "\n";
  return text;
}

std::optional<RailsFile> ParseRailsFile(std::string_view text) {
  if (text.size() > kRailsFileBytesMax || TakeLine(&text) != kBegin) return std::nullopt;
  const auto netns = TakeLine(&text);
  if (!netns.has_value() || !netns->starts_with(kNetns)) return std::nullopt;
  RailsFile file;
  const char* const end = netns->data() + netns->size();
  const auto [read, error] = std::from_chars(netns->data() + kNetns.size(), end, file.netns_inode);
  if (error != std::errc() || read != end) return std::nullopt;
  while (!text.empty()) {
    const auto rail = TakeLine(&text);
    if (!rail.has_value() || !IsRail(*rail) || file.rails.size() >= kRailsFileRailsMax) return std::nullopt;
    file.rails.emplace_back(*rail);
  }
  return file;
}

}  // namespace r2cc
