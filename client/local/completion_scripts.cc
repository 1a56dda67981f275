// The scripts that the shells read. They only ask: r2ccctl itself has the words, so that they fit the program that is installed.
#include <map>

#include "client/local/completion.h"

namespace r2cc::client {
namespace {

// bash takes a word as it is and sorts them; compopt is for the value of a flag that is a path.
constexpr char kBash[] = R"(# bash completion for r2ccctl
_r2ccctl() {
  local IFS=$'\n'
  local lines
  lines=$("${COMP_WORDS[0]}" completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
  if [ "$lines" = ":files" ]; then
    COMPREPLY=()
    compopt -o default
    return
  fi
  # shellcheck disable=SC2206  # a line is a word
  COMPREPLY=($lines)
}
complete -F _r2ccctl r2ccctl
)";

constexpr char kZsh[] = R"(#compdef r2ccctl
compdef _r2ccctl r2ccctl
_r2ccctl() {
  local -a lines described
  local line
  lines=("${(@f)$("${words[1]}" completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "$lines[1]" == ":files" ]]; then
    _files
    return
  fi
  for line in $lines; do
    described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  _describe r2ccctl described
}
# Found through fpath, the file is the function's body.
if [ "$funcstack[1]" = "_r2ccctl" ]; then
  _r2ccctl "$@"
fi
)";

constexpr char kFish[] = R"(# fish completion for r2ccctl
function __r2ccctl_words
  set -l typed (commandline -opc)
  set -l now (commandline -ct)
  set -l lines ($typed[1] completion words $typed[2..-1] "$now" 2>/dev/null)
  if test "$lines[1]" = ":files"
    __fish_complete_path "$now"
    return
  end
  printf '%s\n' $lines
end
complete -c r2ccctl -f -a '(__r2ccctl_words)'
)";

}  // namespace

std::string CompletionScript(const std::string& shell) {
  static const auto* const kScripts = new std::map<std::string, const char*>{{"bash", kBash}, {"fish", kFish}, {"zsh", kZsh}};
  const auto at = kScripts->find(shell);
  return at == kScripts->end() ? "" : at->second;
}

}  // namespace r2cc::client
