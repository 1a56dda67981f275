#include "client/core/table.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/check.h"

namespace r2cc::client {
namespace {

constexpr std::string_view kGap = "  ";
// The last column goes on in further lines if it has so much room; with less it is no text any more.
constexpr size_t kWrappedMin = 24;
// A name that is cut further is nobody's.
constexpr size_t kNameMin = 16;

// The beginning of the character behind `count` characters.
size_t Offset(absl::string_view text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80 && count-- == 0) break;
  return at;
}

// At most `width` characters: the beginning and the end, which distinguishes names of one kind.
std::string Shortened(absl::string_view text, size_t width) {
  const size_t characters = DisplayWidth(text);
  if (characters <= width) return std::string(text);
  const size_t end = (width - 1) / 2;
  return absl::StrCat(text.substr(0, Offset(text, width - 1 - end)), "…", text.substr(Offset(text, characters - end)));
}

// Lines of at most `width` characters, parted between words where there are any.
std::vector<std::string> Wrapped(absl::string_view text, size_t width) {
  std::vector<std::string> lines;
  while (DisplayWidth(text) > width) {
    const size_t most = Offset(text, width);
    size_t end = text[most] == ' ' ? most : text.substr(0, most).rfind(' ');
    if (end == absl::string_view::npos || end == 0) end = most;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  lines.emplace_back(text);
  return lines;
}

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

size_t RowsOf(absl::string_view text, size_t width) {
  size_t rows = 0;
  while (!text.empty()) {
    size_t characters = 0;
    bool escape = false;
    size_t at = 0;
    for (; at < text.size() && text[at] != '\n'; ++at) {
      if (text[at] == '\033')
        escape = true;
      else if (escape)
        escape = text[at] != 'm';
      else if ((static_cast<unsigned char>(text[at]) & 0xc0) != 0x80)
        ++characters;
    }
    rows += width == 0 || characters <= width ? 1 : (characters + width - 1) / width;
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return rows;
}

// 0: the column is left out.
std::vector<size_t> Table::Widths(size_t width) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t widest = 0;
    for (const std::vector<Cell>& row : rows_) widest = std::max(widest, DisplayWidth(row[c].text));
    widths.push_back(widest == 0 ? 0 : std::max(widest, DisplayWidth(columns_[c].header)));
  }
  if (width == 0) return widths;
  const auto last = [&] {
    size_t c = widths.size();
    while (c > 0 && widths[c - 1] == 0) --c;
    return c == 0 ? widths.size() : c - 1;
  };
  // Without the last column.
  const auto others = [&] {
    size_t sum = 0;
    for (size_t c = 0; c < widths.size(); ++c)
      if (c != last() && widths[c] > 0) sum += widths[c] + kGap.size();
    return sum;
  };
  // A column of text goes on in further lines, and needs no more than this.
  const auto fits = [&] {
    const size_t c = last();
    return c == widths.size() || others() + (columns_[c].align_right ? widths[c] : std::min(widths[c], kWrappedMin)) <= width;
  };
  while (!fits()) {
    size_t most = 0;
    for (size_t c = 0; c < widths.size(); ++c)
      if (widths[c] > 0 && columns_[c].spare > (widths[most] > 0 ? columns_[most].spare : 0)) most = c;
    if (widths[most] == 0 || columns_[most].spare == 0) break;
    widths[most] = 0;
  }
  // Names: the longest gives first.
  while (!fits()) {
    size_t longest = widths.size();
    for (size_t c = 0; c < widths.size(); ++c)
      if (c != last() && !columns_[c].align_right && (longest == widths.size() || widths[c] > widths[longest])) longest = c;
    if (longest == widths.size() || widths[longest] <= kNameMin) break;
    --widths[longest];
  }
  if (const size_t c = last(); c < widths.size() && !columns_[c].align_right && others() + widths[c] > width)
    widths[c] = std::min(widths[c], std::max(kWrappedMin, width - std::min(width, others())));
  return widths;
}

std::string Table::Render(bool colour, size_t width) const {
  const std::vector<size_t> widths = Widths(width);
  std::string text;
  const auto add_row = [&](const std::vector<Cell>& cells) {
    std::vector<std::string> more;  // lines of the last column that go on
    std::string line, blanks;       // blanks are held back until something follows them
    size_t begin = 0;               // of the column
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      const bool is_last = std::all_of(widths.begin() + static_cast<ptrdiff_t>(c) + 1, widths.end(), [](size_t one) { return one == 0; });
      std::string shown = cells[c].text;
      if (is_last && !columns_[c].align_right) {
        more = Wrapped(shown, widths[c]);
        shown = more.front();
        more.erase(more.begin());
      } else if (!columns_[c].align_right) {
        shown = Shortened(shown, widths[c]);
      }
      const std::string padding(widths[c] - std::min(widths[c], DisplayWidth(shown)), ' ');
      if (columns_[c].align_right) blanks += padding;
      if (!shown.empty()) {
        absl::StrAppend(&line, blanks, Paint(shown, cells[c].colour, colour));
        blanks.clear();
      }
      if (!columns_[c].align_right) blanks += padding;
      blanks += kGap;
      for (std::string& next : more) next = absl::StrCat(std::string(begin, ' '), Paint(next, cells[c].colour, colour));
      begin += widths[c] + kGap.size();
    }
    absl::StrAppend(&text, line, "\n");
    for (const std::string& next : more) absl::StrAppend(&text, next, "\n");
  };
  std::vector<Cell> headers;
  for (const Column& column : columns_) headers.emplace_back(column.header, Colour::kDim);
  add_row(headers);
  for (const std::vector<Cell>& row : rows_) add_row(row);
  return text;
}

}  // namespace r2cc::client
