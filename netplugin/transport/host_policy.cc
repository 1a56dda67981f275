#include "netplugin/transport/host_policy.h"

#include "netplugin/flow/tuning.h"
#include "netplugin/link/chunk_size.h"

namespace r2cc::net {
namespace {

StripeMode StripeModeOf(const PluginConfig& config) {
  if (!config.mode.has_value()) return StripeMode::kBalance;
  switch (*config.mode) {
    case Mode::kOneRail: return StripeMode::kOneRail;
    case Mode::kMigrate: return StripeMode::kMigrate;
    case Mode::kBalance:
    case Mode::kDegradedAllReduce: return StripeMode::kBalance;
  }
  return StripeMode::kBalance;
}

}  // namespace

void SetPolicy(const PluginConfig& config, Host* host) {
  host->node = config.node;
  host->job = config.job;
  host->chunk_bytes = config.chunk_bytes.value_or(tuning::kChunkBytesBase);
  host->chunks_follow_rate = !config.chunk_bytes.has_value();
  host->mode = StripeModeOf(config);
  // Without protection there is nothing to replay a copy for.
  host->eager_bytes = host->mode == StripeMode::kOneRail ? 0 : kEagerBytesMax;
  host->silence = config.silence_ms * kNanosPerMs;
  host->deadline = config.deadline_ms * kNanosPerMs;
}

}  // namespace r2cc::net
