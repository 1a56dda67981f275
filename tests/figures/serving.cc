#include "tests/figures/serving.h"

#include "base/core/check.h"

namespace r2cc::figures {

ServingTraffic TrafficOf(const ServingJob& job) {
  ServingTraffic traffic;
  // A stage's ranks hold the same activations; each hands the whole of them to its peer over its own rail.
  const double token_bytes = job.hidden * job.weight_bytes;
  traffic.prefill_hops = traffic.decode_hops = job.stages - 1;
  traffic.prefill_bytes = token_bytes * job.prompt_tokens;
  traffic.decode_bytes = token_bytes * job.batch;
  if (job.separate_prefill) {
    const double cache_bytes_per_token = 2.0 * job.layers * job.kv_heads * job.head_size * job.weight_bytes;
    traffic.cache_bytes = cache_bytes_per_token * job.prompt_tokens / (job.tensor_parallel * job.stages);
  }
  return traffic;
}

double MeanWaitSeconds(double outage_s, double window_s, double utilisation) {
  R2CC_CHECK(utilisation >= 0 && utilisation < 1);
  R2CC_CHECK(outage_s / (1 - utilisation) <= window_s);
  return outage_s * outage_s / (2 * window_s * (1 - utilisation));
}

}  // namespace r2cc::figures
