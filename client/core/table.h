// Formats a text table with aligned columns.
#ifndef R2CC_CLIENT_CORE_TABLE_H_
#define R2CC_CLIENT_CORE_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace r2cc::client {

enum class Colour { kNone, kGreen, kYellow, kRed, kBlue, kDim };

// `text` between the escape sequences of `colour`, or as it is where `enabled` is false.
std::string Paint(absl::string_view text, Colour colour, bool enabled);

// `text` without control characters: names and reasons come from other processes and must not control the terminal.
std::string Printable(absl::string_view text);

// Columns that a terminal needs for `text`, taken as UTF-8 without wide or combining characters.
size_t DisplayWidth(absl::string_view text);

struct Column {
  Column(const char* header_in) : header(header_in) {}

  std::string header;
  bool align_right = false;
  // If the lines are too long, the column with the highest rank is left out first; 0: it always stays.
  int spare = 0;
};

// A column of numbers.
inline Column Right(const char* header) {
  Column column(header);
  column.align_right = true;
  return column;
}

inline Column Spare(int rank, Column column) {
  column.spare = rank;
  return column;
}

// Lines that a terminal of `width` columns needs for `text`, which may be coloured; 0: each line is one.
size_t RowsOf(absl::string_view text, size_t width);

struct Cell {
  Cell(absl::string_view text_in, Colour colour_in = Colour::kNone) : text(Printable(text_in)), colour(colour_in) {}
  Cell(const char* text_in) : Cell(absl::string_view(text_in)) {}
  Cell(const std::string& text_in) : Cell(absl::string_view(text_in)) {}

  std::string text;
  Colour colour = Colour::kNone;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // One cell a column.
  void AddRow(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }
  // Header and rows, each ended by a newline and without trailing blanks. A column whose cells are all empty is left out. `width`: columns
  // of the terminal; 0: no limit. If lines would be longer, columns are left out, then long names are shortened in the middle, and the
  // last column continues in further lines.
  std::string Render(bool colour, size_t width = 0) const;

 private:
  std::vector<size_t> Widths(size_t width) const;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CORE_TABLE_H_
