// Finds the possible next words on r2ccctl's command line, for the shells' completion. Pure, except for the names that a daemon knows.
#ifndef R2CC_CLIENT_LOCAL_COMPLETION_H_
#define R2CC_CLIENT_LOCAL_COMPLETION_H_

#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "base/command_line/command_help.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

// `completion SHELL`: the script that the shell reads.
struct CompletionCommand {
  std::string shell;
};

// `completion words WORD...`, which the scripts call: the last word is being typed and may be empty.
struct CompletionQuery {
  std::vector<std::string> words;
};

struct CompletionCandidate {
  std::string word;
  std::string text;  // for a person; may be empty
};

// Names that are possible in addition to the words of the command line itself.
enum class Asked { kNothing, kNodes, kNics, kFiles };

struct Completions {
  std::vector<CompletionCandidate> words;
  Asked also = Asked::kNothing;
  std::string typed;    // the last word
  std::string run_dir;  // as typed before; empty: not
  std::string socket;
};

// `root` is the command to which the words belong.
Completions Complete(const CommandHelp& root, std::span<const std::string> words);

// The nodes' or NICs' names of `reply` that begin as `completions.typed` does.
std::vector<CompletionCandidate> NamesOf(const v1::ListNicsReply& reply, const Completions& completions);

// One line each, in the format of the scripts: the word, a tab, its text. For kFiles the one line ":files".
void Write(const Completions& completions, std::ostream& out);

// The script for "bash", "zsh" or "fish".
std::string CompletionScript(const std::string& shell);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_LOCAL_COMPLETION_H_
