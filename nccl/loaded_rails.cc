#include "nccl/loaded_rails.h"

#include "nccl/loaded_symbol.h"

namespace r2cc::nccl {

std::optional<LoadedRails::Tables> LoadedRails::Find() {
  const MutexLock lock(mutex_);
  if (found_.plugin == nullptr) found_.plugin = static_cast<const abi::SeatTableV2*>(FindLoaded("r2cc_seat_v2"));
  if (found_.tuner == nullptr) found_.tuner = static_cast<const abi::SeatTunerTableV3*>(FindLoaded("r2cc_seat_tuner_v3"));
  if (found_.plugin == nullptr || found_.tuner == nullptr) return std::nullopt;
  return found_;
}

Rails::State LoadedRails::Look() {
  const auto found = Find();
  if (!found.has_value()) return {};
  const int kept = found->plugin->kept_permille();
  const int rails = found->plugin->rails();
  if (kept < 0 || rails < 1) return {};
  return {.is_there = true,
          .node_key = found->plugin->node_key(),
          .kept_permille = static_cast<uint32_t>(kept),
          .rails = static_cast<uint32_t>(rails),
          .bytes_per_s = found->plugin->bytes_per_second(),
          .offers_collnet = found->plugin->offers_collnet() != 0};
}

void LoadedRails::WatchForChild(size_t ranks) {
  const auto found = Find();
  if (!found.has_value()) return;
  found->tuner->watch(ranks);
  found->plugin->watch();
}

bool LoadedRails::MarkChild() {
  const auto found = Find();
  if (!found.has_value()) return false;
  // Before NCCL 2.28 the plugin cannot distinguish communicators: their flows stay on their own rails, and the seat is a little slower.
  found->plugin->mark(1);
  return found->tuner->mark() != 0;
}

void LoadedRails::WatchAllReduce(size_t bytes) {
  if (const auto found = Find(); found.has_value()) found->tuner->watch_all_reduce(bytes);
}

uint64_t LoadedRails::WatchedCommunicator() {
  const auto found = Find();
  return found.has_value() ? found->tuner->watched() : 0;
}

bool LoadedRails::SetWay(uint64_t number, plan::Way way) {
  const auto found = Find();
  return found.has_value() && found->tuner->set_way(number, static_cast<abi::SeatWay>(way)) != 0;
}

void LoadedRails::Report(uint32_t communicator, uint64_t call, const plan::WayDecision& decision) {
  const auto found = Find();
  if (!found.has_value()) return;
  const abi::SeatReport report{.communicator = communicator,
                               .way = static_cast<abi::SeatWay>(decision.way),
                               .call = call,
                               .bytes_min = decision.bytes_min,
                               .expected_permille = static_cast<uint32_t>(decision.over_usual * 1000 + 0.5),
                               .zero = 0};
  found->plugin->report(&report);
}

}  // namespace r2cc::nccl
