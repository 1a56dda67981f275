#include "tests/sim/coverage.h"

#include <algorithm>
#include <cstdio>

namespace r2cc::sim {
namespace {

constexpr const char* kInitiatorEventNames[net::kInitiatorEvents] = {"try", "connected", "proved", "trouble", "peer-fenced"};
constexpr const char* kAcceptorEventNames[net::kAcceptorEvents] = {"greeted", "fence", "trouble", "closed", "not-closed"};
constexpr const char* kSituationNames[kSituations] = {"small message before its buffer",
                                                      "link ends with a chunk half-read",
                                                      "chunk replayed",
                                                      "chunk replayed twice",
                                                      "message over several links",
                                                      "cross-rail link up",
                                                      "fence in a fence",
                                                      "link that returned",
                                                      "key of a device that came back"};

// The cells of link_table.cc that are not empty. Reaching an empty one ends the process, so these cannot say too little unnoticed.
constexpr bool kInitiatorPossible[net::kInitiatorStates][net::kInitiatorEvents] = {
    {true, false, false, true, true},
    {false, true, false, true, true},
    {false, false, true, true, true},
    {false, false, false, true, true},
};

constexpr bool kAcceptorPossible[net::kAcceptorStates][net::kAcceptorEvents] = {
    {true, true, true, false, false},
    {true, true, true, false, false},
    {true, true, true, true, true},
};

struct Row {
  std::string name;
  uint64_t hits;
  std::vector<Rails> not_on{};  // where it cannot be, or hardly
};

// A device places a chunk as a whole, and waits with it until its buffer is there. Which key it used it does not say.
bool IsOfNetwork(Situation situation) {
  return situation == Situation::kStaged || situation == Situation::kHalfRead || situation == Situation::kKeyAgain;
}

std::vector<Rails> NotOn(FaultKind kind) {
  std::vector<Rails> rails{Rails::kNetwork, Rails::kVerbs};
  std::erase_if(rails, [kind](Rails of) { return HappensTo(of, kind); });
  return rails;
}

// An offer of a queue pair comes by the channels that its predecessor's FENCE took before it, and only a full channel drops that: 9 of
// 10,000 seeds.
std::vector<Rails> RareOnVerbs(net::AcceptorState state, net::AcceptorEvent event) {
  const bool rare = state == net::AcceptorState::kUp && event == net::AcceptorEvent::kGreeted;
  return rare ? std::vector<Rails>{Rails::kVerbs} : std::vector<Rails>{};
}

std::vector<Row> RowsOf(const Coverage& coverage) {
  std::vector<Row> rows;
  for (int state = 0; state < net::kInitiatorStates; ++state)
    for (int event = 0; event < net::kInitiatorEvents; ++event)
      if (kInitiatorPossible[state][event])
        rows.push_back(
            {std::string("initiator ") + net::Name(static_cast<net::InitiatorState>(state)) + " x " + kInitiatorEventNames[event],
             coverage.initiator[static_cast<size_t>(state)][static_cast<size_t>(event)]});
  for (int state = 0; state < net::kAcceptorStates; ++state)
    for (int event = 0; event < net::kAcceptorEvents; ++event)
      if (kAcceptorPossible[state][event])
        rows.push_back({std::string("acceptor ") + net::Name(static_cast<net::AcceptorState>(state)) + " x " + kAcceptorEventNames[event],
                        coverage.acceptor[static_cast<size_t>(state)][static_cast<size_t>(event)],
                        RareOnVerbs(static_cast<net::AcceptorState>(state), static_cast<net::AcceptorEvent>(event))});
  for (int kind = 0; kind < kFaultKinds; ++kind)
    rows.push_back({std::string("fault ") + Name(static_cast<FaultKind>(kind)), coverage.faults[static_cast<size_t>(kind)],
                    NotOn(static_cast<FaultKind>(kind))});
  for (int i = 0; i < kSituations; ++i)
    rows.push_back({std::string("situation: ") + kSituationNames[i], coverage.situations[static_cast<size_t>(i)],
                    IsOfNetwork(static_cast<Situation>(i)) ? std::vector<Rails>{Rails::kVerbs} : std::vector<Rails>{}});
  return rows;
}

}  // namespace

void Coverage::Add(const Coverage& other) {
  for (size_t i = 0; i < initiator.size(); ++i)
    for (size_t j = 0; j < initiator[i].size(); ++j) initiator[i][j] += other.initiator[i][j];
  for (size_t i = 0; i < acceptor.size(); ++i)
    for (size_t j = 0; j < acceptor[i].size(); ++j) acceptor[i][j] += other.acceptor[i][j];
  for (size_t i = 0; i < faults.size(); ++i) faults[i] += other.faults[i];
  for (size_t i = 0; i < situations.size(); ++i) situations[i] += other.situations[i];
  messages += other.messages;
  fences += other.fences;
  replays += other.replays;
  errors += other.errors;
}

std::string Coverage::Text() const {
  std::string text;
  for (const Row& row : RowsOf(*this)) {
    char line[96];
    std::snprintf(line, sizeof(line), "  %-44s %12llu\n", row.name.c_str(), static_cast<unsigned long long>(row.hits));
    text += line;
  }
  char line[160];
  std::snprintf(
      line, sizeof(line),
      "  %llu messages, %llu fences answered, %llu of them not for a retired cross-rail link, %llu errors that the contract allows\n",
      static_cast<unsigned long long>(messages), static_cast<unsigned long long>(replays), static_cast<unsigned long long>(fences),
      static_cast<unsigned long long>(errors));
  return text + line;
}

std::vector<std::string> Coverage::Missing(Rails rails) const {
  std::vector<std::string> missing;
  for (const Row& row : RowsOf(*this))
    if (row.hits == 0 && std::find(row.not_on.begin(), row.not_on.end(), rails) == row.not_on.end()) missing.push_back(row.name);
  return missing;
}

}  // namespace r2cc::sim
