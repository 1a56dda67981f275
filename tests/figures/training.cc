#include "tests/figures/training.h"

#include <algorithm>
#include <cmath>

namespace r2cc::figures {
namespace {

constexpr double kBackwardShare = 2.0 / 3;
constexpr int kTensorAllReducesPerLayer = 4;

}  // namespace

Traffic TrafficOf(const TrainingJob& job) {
  const Model& model = job.model;
  Traffic traffic;
  const double micro_batch_tokens = static_cast<double>(job.micro_batch_sequences) * model.sequence_tokens;
  const int micro_batches = std::max(1, static_cast<int>(std::lround(job.batch_tokens / job.data_parallel() / micro_batch_tokens)));
  traffic.slots = micro_batches + job.pipeline_stages - 1;

  const double activation_bytes = micro_batch_tokens * model.hidden * job.activation_bytes;
  if (job.tensor_parallel > 1) {
    traffic.tensor_bytes = kTensorAllReducesPerLayer * activation_bytes * model.layers / job.pipeline_stages;
  }
  if (job.pipeline_stages > 1) {
    traffic.stage_bytes = activation_bytes;
    traffic.embedding_bytes = static_cast<double>(model.vocabulary) * model.hidden / job.tensor_parallel * job.gradient_bytes;
  }
  if (job.data_parallel() > 1) {
    traffic.gradient_bytes = model.parameters / (job.tensor_parallel * job.pipeline_stages) * job.gradient_bytes;
  }
  return traffic;
}

double IterationSeconds(const TrainingJob& job, double compute_s, const TrafficSeconds& traffic) {
  const int slots = TrafficOf(job).slots;
  const double hidden_s = job.overlap * kBackwardShare * compute_s * slots;
  return slots * (compute_s + traffic.tensor + 2 * traffic.stage) + std::max(0.0, traffic.gradient - hidden_s) + traffic.embedding;
}

double CalibratedComputeSeconds(const TrainingJob& job, double tokens_per_s, const TrafficSeconds& healthy) {
  const double iteration_s = job.batch_tokens / tokens_per_s;
  const double slots = TrafficOf(job).slots;
  const double other_s = slots * (healthy.tensor + 2 * healthy.stage) + healthy.embedding;
  // Either the gradients hide behind the backward pass wholly, or what sticks out is part of the iteration.
  const double all_hidden_s = (iteration_s - other_s) / slots;
  if (healthy.gradient <= job.overlap * kBackwardShare * all_hidden_s * slots) return all_hidden_s;
  return (iteration_s - other_s - healthy.gradient) / (slots * (1 - job.overlap * kBackwardShare));
}

}  // namespace r2cc::figures
