// A text table whose columns line up.
#ifndef R2CC_CLIENT_TABLE_H_
#define R2CC_CLIENT_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace r2cc::client {

enum class Colour { kNone, kGreen, kYellow, kRed, kBlue, kDim };

// `text` between the escape sequences of `colour`, or as it is where `enabled` is false.
std::string Paint(absl::string_view text, Colour colour, bool enabled);

// `text` without control characters: names and reasons come from other processes and must not steer the terminal.
std::string Printable(absl::string_view text);

// Columns that a terminal needs for `text`, taken as UTF-8 without wide or combining characters.
size_t DisplayWidth(absl::string_view text);

struct Column {
  Column(const char* header_in) : header(header_in) {}

  std::string header;
  bool align_right = false;
};

// A column of numbers.
inline Column Right(const char* header) {
  Column column(header);
  column.align_right = true;
  return column;
}

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
  // Header and rows, each ended by a newline and without trailing blanks. A column whose cells are all empty is left out.
  std::string Render(bool colour) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_TABLE_H_
