#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/format/format.h"
#include "client/format/format_parts.h"

namespace r2cc::client {
namespace {

std::string Notes(const v1::ConfigState& state, const std::string& prefix, const Style& style) {
  std::string text;
  const auto add = [&](absl::string_view line, Colour colour) {
    absl::StrAppend(&text, Paint(Printable(absl::StrCat(prefix, line)), colour, style.colour), "\n");
  };
  for (const std::string& line : state.refused())
    add(absl::StrCat("refused ", Ago(state.refused_ns(), style), ", what was in force stays: ", line), Colour::kRed);
  for (const std::string& line : state.needs_restart()) add(absl::StrCat("waits for a restart of r2ccd: ", line), Colour::kYellow);
  return text;
}

}  // namespace

// A valid file again: all other text is a comment.
std::string FormatConfig(const v1::ConfigReply& reply, const Style& style) {
  const v1::ConfigState& state = reply.state();
  std::string text = absl::StrCat(Printable(absl::StrCat("# in force, read ", Ago(state.read_ns(), style),
                                                         state.file().empty() ? ", without a file" : " from ", state.file())),
                                  "\n", Notes(state, "# ", style));
  for (const std::string& line : reply.certificates_wrong())
    absl::StrAppend(&text, Paint(Printable(absl::StrCat("# wrong: ", line)), Colour::kRed, style.colour), "\n");
  for (const absl::string_view line : absl::StrSplit(reply.text(), '\n', absl::SkipEmpty())) absl::StrAppend(&text, Printable(line), "\n");
  return text;
}

std::string FormatReload(const v1::ReloadReply& reply, const Style& style) {
  std::string text;
  for (const std::string& line : reply.applied()) absl::StrAppend(&text, Printable(absl::StrCat("in force: ", line)), "\n");
  if (reply.applied().empty()) absl::StrAppend(&text, "nothing has changed that a running daemon takes\n");
  return text + Notes(reply.state(), "", style);
}

}  // namespace r2cc::client
