// The training jobs that the papers name, calibrated on what they publish of them without a fault. Nothing else of them is taken from a
// paper's results; what no paper says is said to be an assumption.
#ifndef R2CC_TESTS_FIGURES_JOBS_H_
#define R2CC_TESTS_FIGURES_JOBS_H_

#include "tests/figures/schemes.h"
#include "tests/figures/training.h"

namespace r2cc::figures {

// Brown et al. 2020, table 2.1; 2,048 tokens of context.
constexpr Model kGpt2700M{.parameters = 2.7e9, .layers = 32, .hidden = 2560, .sequence_tokens = 2048, .vocabulary = 50257};
constexpr Model kGpt13B{.parameters = 13e9, .layers = 40, .hidden = 5120, .sequence_tokens = 2048, .vocabulary = 50257};
// The batches of the same table. Assumed: R2CC's paper need not have used them.
constexpr double kBatch2700MTokens = 1 << 20;
constexpr double kBatch13BTokens = 1 << 21;

// H100 SXM: 900 GB/s of NVLink in both directions together.
constexpr double kNvlinkBytesPerS = 450e9;

// What an AllReduce of `bytes` in each of `gpus` takes inside a server.
double InsideServerSeconds(int gpus, double bytes);

// What the job's traffic takes. Tensor parallel groups stay inside a server; stages are on different servers. Gradients of groups with one
// GPU on each server go over that GPU's rail, groups of all GPUs sum inside the servers meanwhile: the slower of the two sets the pace.
// `flat_ring` (groups of all GPUs only): by one ring through all of them, see FlatAllReduceSeconds().
TrafficSeconds TimesOf(const TrainingJob& job, const Cluster& cluster, Scheme scheme, bool flat_ring, const Lost& lost);

// tokens/s published for runs without a fault, and the jobs that gave them.
constexpr double kHealthy2700M2x8TokensPerS = 314618;
constexpr double kHealthy2700M4x8TokensPerS = 752405;
constexpr double kHealthy13BTokensPerS = 8340;

TrainingJob Job2700M(int servers, double batch_tokens = kBatch2700MTokens);
TrainingJob Job13BPipeline();
TrainingJob Job13BData(int gpus);

// One GPU's compute in one slot of `job`, scaled by floating point operations from the published 2.7B run of 4x8 GPUs.
double ScaledComputeSeconds(const TrainingJob& job);

}  // namespace r2cc::figures

#endif  // R2CC_TESTS_FIGURES_JOBS_H_
