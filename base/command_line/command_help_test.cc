#include "base/command_line/command_help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

namespace r2cc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Program {
  CLI::App app{"Does \"this\"\nand that.", "tool"};
  std::string dir = "/run", output = "table", name, secret;
  bool force = false;

  Program() {
    app.add_option("-d,--dir", dir, "where it is")->option_text("DIR")->capture_default_str();
    app.add_option("--output", output, "how")->check(CLI::IsMember({"table", "json"}))->capture_default_str();
    app.add_option("--secret", secret, "for tests")->group("");
    CLI::App* act = app.add_subcommand("act", "acts");
    act->add_option("NODE/NIC", name, "on what")->required();
    act->add_flag("--force", force, "also if");
    app.require_subcommand(1);
    AddHelpJson(&app);
  }
};

TEST(CommandHelp, HasWhatHelpHas) {
  Program program;
  const CommandHelp help = Describe(program.app);
  EXPECT_EQ(help.name, "tool");
  ASSERT_EQ(help.options.size(), 3u);  // --help, --dir, --output
  EXPECT_THAT(help.options[0].names, ElementsAre("-h", "--help"));
  EXPECT_EQ(help.options[0].value, "");
  EXPECT_THAT(help.options[1].names, ElementsAre("-d", "--dir"));
  EXPECT_EQ(help.options[1].value, "DIR");
  EXPECT_EQ(help.options[1].default_text, "/run");
  EXPECT_THAT(help.options[2].choices, testing::UnorderedElementsAre("table", "json"));
  ASSERT_EQ(help.commands.size(), 1u);
  const CommandHelp& act = help.commands[0];
  ASSERT_EQ(act.options.size(), 3u);
  EXPECT_TRUE(act.options[1].positional && act.options[1].required);
  EXPECT_THAT(act.options[1].names, ElementsAre("NODE/NIC"));
  EXPECT_EQ(act.options[2].value, "");
  EXPECT_THAT(act.options[2].choices, IsEmpty());
}

TEST(CommandHelp, JsonIsAskedForAsTheVersionIs) {
  Program program;
  try {
    program.app.parse(std::vector<std::string>{"--help_json"});
    FAIL() << "it went on";
  } catch (const CLI::CallForVersion& help) {
    EXPECT_EQ(help.get_exit_code(), 0);
    EXPECT_THAT(help.what(), testing::StartsWith("{\"name\":\"tool\",\"text\":\"Does \\\"this\\\"\\u000aand that.\",\"options\":["));
    EXPECT_THAT(help.what(),
                testing::HasSubstr("{\"names\":[\"--force\"],\"value\":\"\",\"text\":\"also if\",\"default\":\"\",\"choices\":[],"
                                   "\"positional\":false,\"required\":false}"));
    EXPECT_THAT(help.what(), testing::Not(testing::HasSubstr("secret")));
    EXPECT_THAT(help.what(), testing::Not(testing::HasSubstr("help_json")));
  }
}

}  // namespace
}  // namespace r2cc
