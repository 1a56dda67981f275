// Tables as CSV: what the figures are drawn from.
#ifndef R2CC_TESTS_FIGURES_TABLE_H_
#define R2CC_TESTS_FIGURES_TABLE_H_

#include <string>
#include <vector>

namespace r2cc::figures {

// A cell: text, or a number with so many decimals.
struct Cell {
  Cell(const char* text) : text(text) {}              // NOLINT: cells are made in place
  Cell(std::string text) : text(std::move(text)) {}   // NOLINT
  Cell(int number) : text(std::to_string(number)) {}  // NOLINT
  Cell(double number, int decimals);

  std::string text;
};

class Table {
 public:
  // `name` becomes a file's name; columns are names with their unit last.
  Table(std::string name, std::vector<std::string> columns);

  // One row, in the columns' order. Ends the process if their numbers differ or a text would need quotes.
  void Add(const std::vector<Cell>& cells);

  // "#NAME", then CSV with a header line, then an empty line.
  std::string Text() const;

 private:
  std::string name_;
  size_t columns_;
  std::string lines_;
};

}  // namespace r2cc::figures

#endif  // R2CC_TESTS_FIGURES_TABLE_H_
