#include "nccl/loaded_rails.h"

#include "nccl/loaded_symbol.h"

namespace r2cc::nccl {

bool LoadedRails::Find() {
  const std::lock_guard lock(mutex_);
  if (plugin_ == nullptr) plugin_ = static_cast<const abi::SeatTableV2*>(FindLoaded("r2cc_seat_v2"));
  if (tuner_ == nullptr) tuner_ = static_cast<const abi::SeatTunerTableV2*>(FindLoaded("r2cc_seat_tuner_v2"));
  return plugin_ != nullptr && tuner_ != nullptr;
}

Rails::State LoadedRails::Look() {
  if (!Find()) return {};
  const int kept = plugin_->kept_permille();
  const int rails = plugin_->rails();
  if (kept < 0 || rails < 1) return {};
  return {.is_there = true,
          .node_key = plugin_->node_key(),
          .kept_permille = static_cast<uint32_t>(kept),
          .rails = static_cast<uint32_t>(rails),
          .bytes_per_s = plugin_->bytes_per_second(),
          .offers_collnet = plugin_->offers_collnet() != 0};
}

void LoadedRails::WatchForChild(size_t ranks) {
  if (!Find()) return;
  tuner_->watch(ranks);
  plugin_->watch();
}

bool LoadedRails::MarkChild(plan::Way way) {
  if (!Find()) return false;
  // Before NCCL 2.28 the plugin cannot tell communicators apart: their flows stay on their own rails, and the seat is a little slower.
  plugin_->mark(way == plan::Way::kTree ? 1 : 0);
  return tuner_->mark(static_cast<abi::SeatWay>(way)) != 0;
}

void LoadedRails::Report(uint32_t communicator, uint64_t call, const plan::WayDecision& decision) {
  if (!Find()) return;
  const abi::SeatReport report{.communicator = communicator,
                               .way = static_cast<abi::SeatWay>(decision.way),
                               .call = call,
                               .bytes_min = decision.bytes_min,
                               .expected_permille = static_cast<uint32_t>(decision.over_usual * 1000 + 0.5),
                               .zero = 0};
  plugin_->report(&report);
}

}  // namespace r2cc::nccl
