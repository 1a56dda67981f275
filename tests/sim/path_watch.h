// Since when no rail has joined which processes of a simulated world.
#ifndef R2CC_TESTS_SIM_PATH_WATCH_H_
#define R2CC_TESTS_SIM_PATH_WATCH_H_

#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/sim/network.h"

namespace r2cc::sim {

class PathWatch {
 public:
  // `rails`: how many each process has. `network` outlives it.
  PathWatch(Network* network, std::vector<int> rails) : network_(network), rails_(std::move(rails)) {}

  // What passes may have changed.
  void Note();
  // Since when no rail joins the two; and when one did again.
  std::optional<Nanos> lost_since(int a, int b) const { return Find(lost_since_, PairOf(a, b)); }
  std::optional<Nanos> back_at(int a, int b) const { return Find(back_at_, PairOf(a, b)); }
  // Since when no rail of `from` has reached this one of `to`.
  std::optional<Nanos> cut_off_since(int from, int to, int rail) const { return Find(cut_off_since_, std::tuple(from, to, rail)); }

 private:
  static std::pair<int, int> PairOf(int a, int b) { return {std::min(a, b), std::max(a, b)}; }
  template <typename Key>
  static std::optional<Nanos> Find(const std::map<Key, Nanos>& times, const Key& key) {
    const auto found = times.find(key);
    return found == times.end() ? std::nullopt : std::optional(found->second);
  }
  bool Joins(Port one, Port other) const { return network_->Passes(one, other) && network_->Passes(other, one); }
  void NoteRails(int from, int to);

  Network* const network_;
  const std::vector<int> rails_;
  std::map<std::pair<int, int>, Nanos> lost_since_, back_at_;
  std::map<std::tuple<int, int, int>, Nanos> cut_off_since_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_PATH_WATCH_H_
