#include "client/table.h"

#include <gtest/gtest.h>

namespace r2cc::client {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoTrailingBlanks) {
  Table table({"NAME", Right("BYTES"), "NOTE"});
  table.AddRow({"a", "1", ""});
  table.AddRow({"longer", "12345678", "x"});
  EXPECT_EQ(table.Render(false),
            "NAME       BYTES  NOTE\n"
            "a              1\n"
            "longer  12345678  x\n");
}

TEST(Table, LeavesOutEmptyColumns) {
  Table table({"NAME", "PCI", "STATE"});
  table.AddRow({"a", "", "up"});
  EXPECT_EQ(table.Render(false), "NAME  STATE\na     up\n");
}

TEST(Table, ColourDoesNotMoveColumns) {
  Table table({"S", "N"});
  table.AddRow({{"FAILED", Colour::kRed}, "1"});
  EXPECT_EQ(table.Render(true), "\033[2mS\033[0m       \033[2mN\033[0m\n\033[31mFAILED\033[0m  1\n");
}

TEST(Table, CountsCharactersNotBytes) {
  EXPECT_EQ(DisplayWidth("→ é"), 3u);
  Table table({"A", "B"});
  table.AddRow({"é", "1"});
  table.AddRow({"ee", "2"});
  EXPECT_EQ(table.Render(false), "A   B\né   1\nee  2\n");
}

TEST(Table, TextCannotSteerTheTerminal) {
  Table table({"A"});
  table.AddRow({"x\033[2Jy\nz\x7f."});
  EXPECT_EQ(table.Render(false), "A\nx [2Jy z .\n");
  EXPECT_EQ(Printable("\xc2\x9b[2J § Û"), "  [2J § Û") << "U+009B is ESC [ in one character";
}

}  // namespace
}  // namespace r2cc::client
