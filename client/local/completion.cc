#include "client/local/completion.h"

#include <algorithm>
#include <map>

#include "client/core/table.h"

namespace r2cc::client {
namespace {

// Placeholders of a value or a positional argument for which the daemon, or the disk, knows the candidates.
const std::map<std::string, Asked>& KnownValues() {
  static const auto* const kValues =
      new std::map<std::string, Asked>{{"NODE/NIC", Asked::kNics}, {"NODE", Asked::kNodes}, {"PEER", Asked::kNodes},
                                       {"DIR", Asked::kFiles},     {"FILE", Asked::kFiles}, {"PATH", Asked::kFiles}};
  return *kValues;
}

// By the name of the flag, where its value's is "TEXT".
const std::map<std::string, Asked>& KnownFlags() {
  static const auto* const kFlags =
      new std::map<std::string, Asked>{{"--node", Asked::kNodes},  {"--run_dir", Asked::kFiles}, {"--socket", Asked::kFiles},
                                       {"--certs", Asked::kFiles}, {"--dir", Asked::kFiles},     {"--out", Asked::kFiles}};
  return *kFlags;
}

Asked Find(const std::map<std::string, Asked>& known, const std::string& name) {
  const auto at = known.find(name);
  return at == known.end() ? Asked::kNothing : at->second;
}

// The command that the words have selected.
class Walk {
 public:
  explicit Walk(const CommandHelp* root) : path_{root} {}

  void Take(const std::string& word) {
    if (waiting_ != nullptr) {
      if (Has(*waiting_, "--run_dir")) run_dir_ = word;
      if (Has(*waiting_, "--socket")) socket_ = word;
      waiting_ = nullptr;
    } else if (word.starts_with("-")) {
      // "--flag=value" is whole.
      const OptionHelp* const option = word.find('=') == std::string::npos ? FindOption(word) : nullptr;
      if (option != nullptr && !option->value.empty()) waiting_ = option;
    } else if (const CommandHelp* const command = FindCommand(word)) {
      path_.push_back(command);
      positionals_ = 0;
    } else {
      ++positionals_;
    }
  }

  void Next(const std::string& typed, Completions* to) const {
    to->run_dir = run_dir_;
    to->socket = socket_;
    const auto offer = [&](const std::string& word, const std::string& text) {
      if (word.starts_with(typed)) to->words.push_back({word, text});
    };
    if (waiting_ != nullptr) {
      for (const std::string& choice : waiting_->choices) offer(choice, "");
      to->also = Find(KnownValues(), waiting_->value);
      for (const std::string& name : waiting_->names) to->also = to->also == Asked::kNothing ? Find(KnownFlags(), name) : to->also;
    } else if (typed.starts_with("-")) {
      for (const CommandHelp* command : path_)
        for (const OptionHelp& option : command->options)
          if (!option.positional && !(command != path_.back() && Has(option, "--version"))) offer(option.names.back(), option.text);
      // --help is of each command.
      std::sort(to->words.begin(), to->words.end(),
                [](const CompletionCandidate& a, const CompletionCandidate& b) { return a.word < b.word; });
      to->words.erase(std::unique(to->words.begin(), to->words.end(),
                                  [](const CompletionCandidate& a, const CompletionCandidate& b) { return a.word == b.word; }),
                      to->words.end());
    } else {
      for (const CommandHelp& command : path_.back()->commands) offer(command.name, command.text);
      size_t left = positionals_;
      for (const OptionHelp& option : path_.back()->options) {
        if (!option.positional || left-- > 0) continue;
        for (const std::string& choice : option.choices) offer(choice, "");
        to->also = Find(KnownValues(), option.names.front());
        break;
      }
    }
  }

 private:
  static bool Has(const OptionHelp& option, const std::string& name) {
    return std::find(option.names.begin(), option.names.end(), name) != option.names.end();
  }
  const OptionHelp* FindOption(const std::string& name) const {
    for (const CommandHelp* command : path_)
      for (const OptionHelp& option : command->options)
        if (!option.positional && Has(option, name)) return &option;
    return nullptr;
  }
  const CommandHelp* FindCommand(const std::string& name) const {
    for (const CommandHelp& command : path_.back()->commands)
      if (command.name == name) return &command;
    return nullptr;
  }

  std::vector<const CommandHelp*> path_;  // root first: the flags of all of them may stand behind a command
  const OptionHelp* waiting_ = nullptr;   // its value comes next
  size_t positionals_ = 0;
  std::string run_dir_;
  std::string socket_;
};

}  // namespace

Completions Complete(const CommandHelp& root, std::span<const std::string> words) {
  Completions completions;
  Walk walk(&root);
  if (words.empty()) return completions;
  for (const std::string& word : words.first(words.size() - 1)) walk.Take(word);
  completions.typed = words.back();
  walk.Next(completions.typed, &completions);
  return completions;
}

std::vector<CompletionCandidate> NamesOf(const v1::ListNicsReply& reply, const Completions& completions) {
  std::vector<CompletionCandidate> names;
  const auto offer = [&](const std::string& word) {
    if (word.starts_with(completions.typed)) names.push_back({word, ""});
  };
  for (const v1::NodeView& node : reply.nodes()) {
    if (completions.also == Asked::kNodes) offer(node.node());
    if (completions.also == Asked::kNics)
      for (const v1::NicView& nic : node.nics()) offer(node.node() + "/" + nic.name());
  }
  return names;
}

void Write(const Completions& completions, std::ostream& out) {
  if (completions.also == Asked::kFiles) out << ":files\n";
  for (const CompletionCandidate& candidate : completions.words) {
    out << Printable(candidate.word);
    if (!candidate.text.empty()) out << '\t' << Printable(candidate.text);
    out << '\n';
  }
  out << std::flush;
}

}  // namespace r2cc::client
