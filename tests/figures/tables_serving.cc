// Serving with a lost NIC. No paper publishes healthy figures of it in numbers: the models are Llama 3.1's (Grattafiori et al. 2024), the
// GPU is an H100 at the compute rate that the published training figure implies and at 0.8 of its memory's bandwidth.
#include <string>

#include "tests/figures/jobs.h"
#include "tests/figures/serving.h"
#include "tests/figures/tables.h"

namespace r2cc::figures {
namespace {

constexpr double kMemoryBytesPerS = 0.8 * 3.35e12;
const Cluster kCluster{.servers = 2};

double FlopsPerS() {
  const TrainingJob job = Job2700M(4);
  return 6 * job.model.parameters * job.micro_batch_sequences * job.model.sequence_tokens / ScaledComputeSeconds(job);
}

ServingJob Pipeline405B() {
  return {.parameters = 405e9,
          .layers = 126,
          .hidden = 16384,
          .kv_heads = 8,
          .head_size = 128,
          .tensor_parallel = 8,
          .stages = 2,
          .prompt_tokens = 2048,
          .output_tokens = 256,
          .batch = 32,
          .flops_per_s = FlopsPerS(),
          .memory_bytes_per_s = kMemoryBytesPerS};
}

ServingJob Separate70B() {
  return {.parameters = 70e9,
          .layers = 80,
          .hidden = 8192,
          .kv_heads = 8,
          .head_size = 128,
          .tensor_parallel = 8,
          .stages = 1,
          .prompt_tokens = 2048,
          .output_tokens = 256,
          .batch = 32,
          .flops_per_s = FlopsPerS(),
          .memory_bytes_per_s = kMemoryBytesPerS,
          .separate_prefill = true};
}

struct NamedJob {
  const char* name;
  ServingJob job;
};

std::vector<NamedJob> Jobs() { return {{"405B over two servers", Pipeline405B()}, {"70B with prefill and decode apart", Separate70B()}}; }

ServingSeconds With(const ServingJob& job, Scheme scheme, int lost) {
  return Serve(job, [&](double bytes) { return TransferSeconds(kCluster, scheme, bytes, lost); });
}

// One NIC of one server is lost all the time.
Table Degraded() {
  Table table("serving", {"job", "scheme", "ttft_ms", "tpot_ms", "request_s", "ttft_percent", "tpot_percent", "request_percent"});
  for (const auto& [name, job] : Jobs()) {
    const ServingSeconds healthy = With(job, Scheme::kBalance, 0);
    const auto add = [&](const std::string& scheme, const ServingSeconds& seconds) {
      const auto percent = [](double now, double before) { return Cell((now / before - 1) * 100, 3); };
      table.Add({name,
                 scheme,
                 {seconds.first_token * 1e3, 2},
                 {seconds.per_output_token * 1e3, 3},
                 {seconds.request, 3},
                 percent(seconds.first_token, healthy.first_token),
                 percent(seconds.per_output_token, healthy.per_output_token),
                 percent(seconds.request, healthy.request)});
    };
    add("no fault", healthy);
    add(SchemeName(Scheme::kMigration), With(job, Scheme::kMigration, 1));
    add(SchemeName(Scheme::kBalance), With(job, Scheme::kBalance, 1));
    add(SchemeName(Scheme::kOurs), With(job, Scheme::kOurs, 1));
  }
  return table;
}

// A NIC dies under requests that are half done. Stock NCCL: the default time-out, ten minutes until the service is up again (Qian et al.,
// arXiv 2601.22438: up to), and the request from its start. DejaVu-like: the time-out, then the cache comes back from its copy over the
// network and the last token is made again; nothing else is counted. R2CC: the longest published hit. Ours: the longest stall measured
// with stock NCCL (measured_stalls.csv). The wait is the mean over all requests of an hour in which that happens once, at half load.
Table Outage(double hit_s) {
  constexpr double kTimeoutS = 58.5, kTimeoutFloorS = 3.5, kRestartS = 600, kR2ccHitS = 1.5;
  constexpr double kHourS = 3600, kUtilisation = 0.5;
  Table table("serving_outage", {"job", "scheme", "outage_s", "hit_request_percent", "over_r2cc", "mean_wait_ms"});
  for (const auto& [name, job] : Jobs()) {
    const ServingSeconds healthy = With(job, Scheme::kBalance, 0);
    const double tokens = job.prompt_tokens + job.output_tokens / 2.0;
    const double cache_bytes = 2.0 * job.layers * job.kv_heads * job.head_size * job.weight_bytes * tokens * job.batch;
    const double restore_s = cache_bytes / kCluster.server_bytes_per_s() + healthy.per_output_token;
    const auto add = [&](const char* scheme, double outage_s, double again_s) {
      table.Add({name,
                 scheme,
                 {outage_s, 3},
                 {(outage_s + again_s) / healthy.request * 100, 2},
                 {(outage_s + again_s) / kR2ccHitS, 2},
                 {MeanWaitSeconds(outage_s, kHourS, kUtilisation) * 1e3, 2}});
    };
    add("stock NCCL with restart", kTimeoutS + kRestartS, healthy.request / 2);
    add("DejaVu-like; default time-out", kTimeoutS + restore_s, 0);
    add("DejaVu-like; shortest time-out", kTimeoutFloorS + restore_s, 0);
    add("R2CC", kR2ccHitS, 0);
    add("ours", hit_s, 0);
  }
  return table;
}

}  // namespace

std::vector<Table> ServingTables(double hit_s) { return {Degraded(), Outage(hit_s)}; }

}  // namespace r2cc::figures
