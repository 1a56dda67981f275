#include "tests/figures/jobs.h"

#include <algorithm>

#include "base/core/check.h"
#include "plan/schedule/cost.h"

namespace r2cc::figures {

double InsideServerSeconds(int gpus, double bytes) { return plan::FaultFreeRingTime(gpus, bytes, kNvlinkBytesPerS); }

TrafficSeconds TimesOf(const TrainingJob& job, const Cluster& cluster, Scheme scheme, bool flat_ring, const Lost& lost) {
  R2CC_CHECK(job.tensor_parallel == 1 || job.tensor_parallel == job.gpus_per_server);
  const Traffic traffic = TrafficOf(job);
  const int worst = *std::max_element(lost.begin(), lost.end());
  TrafficSeconds seconds;
  if (traffic.tensor_bytes > 0) seconds.tensor = InsideServerSeconds(job.tensor_parallel, traffic.tensor_bytes);
  if (traffic.stage_bytes > 0) {
    seconds.stage = TransferSeconds(cluster, scheme, traffic.stage_bytes, worst);
    // Two members: each sends the other all that it has.
    seconds.embedding = TransferSeconds(cluster, scheme, traffic.embedding_bytes, worst);
  }
  if (traffic.gradient_bytes > 0) {
    if (flat_ring) {
      seconds.gradient = FlatAllReduceSeconds(cluster, job.gpus(), scheme, traffic.gradient_bytes, lost);
    } else if (job.tensor_parallel == 1) {
      seconds.gradient = std::max(ServerAllReduceSeconds(cluster, scheme, traffic.gradient_bytes, lost),
                                  InsideServerSeconds(job.gpus_per_server, traffic.gradient_bytes));
    } else {
      seconds.gradient = ServerAllReduceSeconds(cluster, scheme, traffic.gradient_bytes * job.gpus_per_server, lost);
    }
  }
  return seconds;
}

TrainingJob Job2700M(int servers, double batch_tokens) { return {.model = kGpt2700M, .servers = servers, .batch_tokens = batch_tokens}; }

TrainingJob Job13BPipeline() {
  return {.model = kGpt13B, .servers = 2, .tensor_parallel = 8, .pipeline_stages = 2, .batch_tokens = kBatch13BTokens};
}

TrainingJob Job13BData(int gpus) { return {.model = kGpt13B, .servers = gpus / 8, .tensor_parallel = 8, .batch_tokens = kBatch13BTokens}; }

double ScaledComputeSeconds(const TrainingJob& job) {
  const TrainingJob known = Job2700M(4);
  const Cluster cluster{.servers = known.servers};
  const TrafficSeconds healthy = TimesOf(known, cluster, Scheme::kBalance, true, Lost(known.servers, 0));
  const double known_s = CalibratedComputeSeconds(known, kHealthy2700M4x8TokensPerS, healthy);
  const auto work = [](const TrainingJob& of) {
    return of.model.parameters * of.micro_batch_sequences * of.model.sequence_tokens / (of.tensor_parallel * of.pipeline_stages);
  };
  return known_s * work(job) / work(known);
}

}  // namespace r2cc::figures
