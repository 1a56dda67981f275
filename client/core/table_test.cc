#include "client/core/table.h"

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

TEST(Table, ANarrowTerminalSparesColumnsAndWrapsTheLast) {
  Table table({"NIC", "STATE", Spare(1, Right("RATE")), Spare(2, "PCI"), "REASON"});
  table.AddRow({"n0/rail0", "HEALTHY", "500 Mbit/s", "0000:1b:00.0", "link up"});
  table.AddRow({"n0/rail1", "FAILED", "?", "", "no answer between n0/rail1 and n1/rail1: port of n0/rail1"});
  const std::string wide = table.Render(false);
  EXPECT_EQ(table.Render(false, 200), wide);
  EXPECT_EQ(table.Render(false, 69),
            "NIC       STATE          RATE  PCI           REASON\n"
            "n0/rail0  HEALTHY  500 Mbit/s  0000:1b:00.0  link up\n"
            "n0/rail1  FAILED            ?                no answer between\n"
            "                                             n0/rail1 and n1/rail1:\n"
            "                                             port of n0/rail1\n");
  EXPECT_EQ(table.Render(false, 55),
            "NIC       STATE          RATE  REASON\n"
            "n0/rail0  HEALTHY  500 Mbit/s  link up\n"
            "n0/rail1  FAILED            ?  no answer between\n"
            "                               n0/rail1 and n1/rail1:\n"
            "                               port of n0/rail1\n");
  EXPECT_EQ(table.Render(false, 43),
            "NIC       STATE    REASON\n"
            "n0/rail0  HEALTHY  link up\n"
            "n0/rail1  FAILED   no answer between\n"
            "                   n0/rail1 and n1/rail1:\n"
            "                   port of n0/rail1\n");
}

TEST(Table, ALongNameIsShortenedInTheMiddleWhereATerminalIsNarrow) {
  Table table({"NIC", "STATE", "REASON"});
  table.AddRow({"gpu-node-0042.rack3.example.com/rail7-of-eight", "HEALTHY", "link up"});
  EXPECT_EQ(table.Render(false, 60),
            "NIC                                         STATE    REASON\n"
            "gpu-node-0042.rack3.e…e.com/rail7-of-eight  HEALTHY  link up\n");
  for (size_t width = 1; width < 100; ++width) {
    const std::string text = table.Render(false, width);
    EXPECT_NE(text.find("HEALTHY"), std::string::npos) << width;
    if (width < 16 + 2 + 7 + 2 + 24) continue;
    EXPECT_EQ(RowsOf(text, width), RowsOf(text, 0)) << width << "\n" << text;
  }
}

TEST(Table, RowsThatATerminalNeeds) {
  EXPECT_EQ(RowsOf("", 80), 0u);
  EXPECT_EQ(RowsOf("a\n\nb\n", 80), 3u);
  EXPECT_EQ(RowsOf("12345\n", 5), 1u);
  EXPECT_EQ(RowsOf("123456\n", 5), 2u);
  EXPECT_EQ(RowsOf("\033[31m12345\033[0m\n", 5), 1u) << "colours take no room";
  EXPECT_EQ(RowsOf("ééééé\n", 5), 1u);
  EXPECT_EQ(RowsOf("123456\n", 0), 1u);
}

TEST(Table, TextCannotSteerTheTerminal) {
  Table table({"A"});
  table.AddRow({"x\033[2Jy\nz\x7f."});
  EXPECT_EQ(table.Render(false), "A\nx [2Jy z .\n");
  EXPECT_EQ(Printable("\xc2\x9b[2J § Û"), "  [2J § Û") << "U+009B is ESC [ in one character";
}

}  // namespace
}  // namespace r2cc::client
