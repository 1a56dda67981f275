#include "tests/rigs/faulty_libibverbs/plan.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace r2cc::rig {
namespace {

constexpr struct {
  std::string_view name;
  FaultKind kind;
} kKinds[] = {{"completion", FaultKind::kCompletion},
              {"post_send", FaultKind::kPostSend},
              {"post_receive", FaultKind::kPostReceive},
              {"pair_state", FaultKind::kPairState}};

// What stands before `mark`, which goes too.
std::string_view Take(std::string_view* text, char mark) {
  const size_t end = std::min(text->find(mark), text->size());
  const std::string_view taken = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return taken;
}

// All of `text`, and at least 1.
template <typename Number>
bool Read(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size() && *number >= 1;
}

}  // namespace

bool ParseFaults(std::string_view text, std::vector<Fault>* faults, std::string* error) {
  while (!text.empty()) {
    std::string_view rest = Take(&text, ',');
    const std::string_view whole = rest;
    const std::string_view name = Take(&rest, ':');
    const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& entry) { return entry.name == name; });
    Fault fault;
    const std::string_view number = Take(&rest, ':');
    if (kind == std::end(kKinds) || !Read(number, &fault.number) || !Read(rest, &fault.value)) {
      *error = "R2CC_VERBS_FAULTS: '" + std::string(whole) +
               "' is not KIND:NUMBER:VALUE with a kind of completion, post_send, post_receive, pair_state";
      return false;
    }
    fault.kind = kind->kind;
    faults->push_back(fault);
  }
  return true;
}

}  // namespace r2cc::rig
