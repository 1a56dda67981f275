#include "client/local/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "client/arguments.h"

namespace r2cc::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> Texts(const std::vector<CompletionCandidate>& candidates) {
  std::vector<std::string> words;
  for (const CompletionCandidate& candidate : candidates) words.push_back(candidate.word);
  return words;
}

Completions Typed(std::vector<std::string> words) { return CompleteArguments({std::move(words)}); }

TEST(Completion, Commands) {
  EXPECT_THAT(Texts(Typed({"stat"}).words), ElementsAre("status"));
  EXPECT_THAT(Texts(Typed({""}).words), testing::IsSupersetOf({"nic", "events", "completion", "plan"}));
  EXPECT_THAT(Texts(Typed({"nic", "dr"}).words), ElementsAre("drain"));
  EXPECT_EQ(Typed({"nic", "dr"}).words[0].text.substr(0, 21), "send no new traffic o");
  EXPECT_THAT(Texts(Typed({"--run_dir", "nic", ""}).words), Contains("status")) << "nic is the directory's name";
}

TEST(Completion, FlagsOfTheCommandAndOfAllCommands) {
  const std::vector<std::string> words = Texts(Typed({"nic", "drain", "--"}).words);
  EXPECT_THAT(words, testing::IsSupersetOf({"--wait", "--force", "--job", "--run_dir", "--output", "--help"}));
  EXPECT_EQ(std::count(words.begin(), words.end(), "--help"), 1);
  EXPECT_THAT(words, Not(Contains("--for")));
  EXPECT_THAT(words, Not(Contains("--version"))) << "that is the program's alone";
  EXPECT_THAT(Texts(Typed({"--v"}).words), ElementsAre("--version"));
  EXPECT_THAT(Texts(Typed({"--help_"}).words), IsEmpty()) << "not in --help, so not here";
}

TEST(Completion, ValuesThatAreKnown) {
  EXPECT_THAT(Texts(Typed({"status", "-o", ""}).words), testing::UnorderedElementsAre("table", "wide", "json"));
  EXPECT_THAT(Texts(Typed({"status", "--output", "j"}).words), ElementsAre("json"));
  EXPECT_THAT(Texts(Typed({"completion", "z"}).words), ElementsAre("zsh"));
  EXPECT_EQ(Typed({"status", "--run_dir", "/r"}).also, Asked::kFiles);
  EXPECT_THAT(Texts(Typed({"status", "--output=json", "--b"}).words), ElementsAre("--bad")) << "a flag with its value is whole";
}

TEST(Completion, FactsThatOnlyTheDaemonKnows) {
  const Completions nics = Typed({"--run_dir", "/x", "--socket", "/y", "nic", "drain", "no"});
  EXPECT_EQ(nics.also, Asked::kNics);
  EXPECT_EQ(nics.run_dir, "/x");
  EXPECT_EQ(nics.socket, "/y");
  EXPECT_EQ(Typed({"nic", "drain", "node1/rail0", ""}).also, Asked::kNothing) << "it takes one";
  EXPECT_EQ(Typed({"nic", "list", ""}).also, Asked::kNodes);
  EXPECT_EQ(Typed({"nic", "list", "--node", ""}).also, Asked::kNodes);
  v1::ListNicsReply reply;
  for (const char* name : {"node0", "other"}) {
    v1::NodeView* const node = reply.add_nodes();
    node->set_node(name);
    node->add_nics()->set_name("rail0");
    node->add_nics()->set_name("rail1");
  }
  EXPECT_THAT(Texts(NamesOf(reply, nics)), ElementsAre("node0/rail0", "node0/rail1"));
  EXPECT_THAT(Texts(NamesOf(reply, Typed({"nic", "list", "o"}))), ElementsAre("other"));
  EXPECT_THAT(NamesOf(reply, Typed({"status", ""})), IsEmpty());
}

TEST(Completion, NothingIsMadeOfNothing) {
  EXPECT_THAT(Typed({}).words, IsEmpty());
  EXPECT_THAT(Typed({"nonsense", "more", ""}).words, Not(IsEmpty())) << "the program will name the mistake";
}

TEST(Completion, ALineACandidate) {
  std::ostringstream out;
  Completions two;
  two.words = {CompletionCandidate{"drain", "send\nno"}, CompletionCandidate{"--bad", ""}};
  Write(two, out);
  EXPECT_EQ(out.str(), "drain\tsend no\n--bad\n");
  std::ostringstream files;
  Write(Typed({"--certs", ""}), files);
  EXPECT_EQ(files.str(), ":files\n");
}

TEST(Completion, TheCommandLineGivesScriptOrCompletions) {
  const auto parse = [](std::vector<std::string> words) {
    return ParseArguments(std::move(words), absl::UnixEpoch(), absl::UTCTimeZone());
  };
  EXPECT_EQ(std::get<CompletionCommand>(parse({"completion", "fish"})).shell, "fish");
  EXPECT_THAT(std::get<CompletionQuery>(parse({"completion", "words", "nic", "--", ""})).words, ElementsAre("nic", "--", ""));
  EXPECT_TRUE(std::holds_alternative<UsageError>(parse({"completion", "tcsh"})));
  for (const char* shell : {"bash", "zsh", "fish"}) EXPECT_THAT(CompletionScript(shell), testing::HasSubstr("completion words")) << shell;
  EXPECT_EQ(CompletionScript("tcsh"), "");
}

}  // namespace
}  // namespace r2cc::client
