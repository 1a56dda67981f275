#include "tests/figures/table.h"

#include <cmath>
#include <cstdio>

#include "base/core/check.h"

namespace r2cc::figures {

Cell::Cell(double number, int decimals) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "%.*f", decimals, number);
  text = buffer;
  // The last digit of a rounded zero must not depend on the sign of a rounding error.
  if (text.find_first_not_of("-0.") == std::string::npos && text.front() == '-') text.erase(0, 1);
}

Table::Table(std::string name, std::vector<std::string> columns) : name_(std::move(name)), columns_(columns.size()) {
  for (const std::string& column : columns) lines_ += (lines_.empty() ? "" : ",") + column;
  lines_ += '\n';
}

void Table::Add(const std::vector<Cell>& cells) {
  R2CC_CHECK(cells.size() == columns_);
  std::string line;
  for (const Cell& cell : cells) {
    R2CC_CHECK(cell.text.find_first_of(",\"\n") == std::string::npos);
    line += (&cell == cells.data() ? "" : ",") + cell.text;
  }
  lines_ += line + '\n';
}

std::string Table::Text() const { return "#" + name_ + '\n' + lines_ + '\n'; }

}  // namespace r2cc::figures
