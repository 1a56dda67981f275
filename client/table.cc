#include "client/table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/check.h"

namespace r2cc::client {
namespace {

constexpr char kGap[] = "  ";

absl::string_view EscapeCode(Colour colour) {
  switch (colour) {
    case Colour::kNone: return "";
    case Colour::kGreen: return "32";
    case Colour::kYellow: return "33";
    case Colour::kRed: return "31";
    case Colour::kBlue: return "34";
    case Colour::kDim: return "2";
  }
  return "";
}

}  // namespace

std::string Paint(absl::string_view text, Colour colour, bool enabled) {
  if (!enabled || colour == Colour::kNone || text.empty()) return std::string(text);
  return absl::StrCat("\033[", EscapeCode(colour), "m", text, "\033[0m");
}

std::string Printable(absl::string_view text) {
  std::string clean(text);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  // U+0080 to U+009F: the same commands as with ESC before them.
  for (size_t i = 0; i + 1 < clean.size(); ++i)
    if (clean[i] == '\xc2' && static_cast<unsigned char>(clean[i + 1]) < 0xa0) clean.replace(i, 2, "  ");
  return clean;
}

size_t DisplayWidth(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::AddRow(std::vector<Cell> cells) {
  R2CC_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Render(bool colour) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = 0;
    for (const std::vector<Cell>& row : rows_) width = std::max(width, DisplayWidth(row[c].text));
    widths.push_back(width == 0 ? 0 : std::max(width, DisplayWidth(columns_[c].header)));
  }
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line, blanks;  // blanks are held back until something follows them
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      const Cell& cell = cell_of(c);
      const std::string padding(widths[c] - DisplayWidth(cell.text), ' ');
      if (columns_[c].align_right) blanks += padding;
      if (!cell.text.empty()) {
        absl::StrAppend(&line, blanks, Paint(cell.text, cell.colour, colour));
        blanks.clear();
      }
      if (!columns_[c].align_right) blanks += padding;
      blanks += kGap;
    }
    absl::StrAppend(&text, line, "\n");
  };
  std::vector<Cell> headers;
  for (const Column& column : columns_) headers.emplace_back(column.header, Colour::kDim);
  add_line([&](size_t c) -> const Cell& { return headers[c]; });
  for (const std::vector<Cell>& row : rows_) add_line([&](size_t c) -> const Cell& { return row[c]; });
  return text;
}

}  // namespace r2cc::client
