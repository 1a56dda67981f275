// Serving in closed form: prefill is compute-bound, decode is bound by reading the weights; both pay for what crosses the network. What an
// outage costs follows from a fluid queue.
#ifndef R2CC_TESTS_FIGURES_SERVING_H_
#define R2CC_TESTS_FIGURES_SERVING_H_

namespace r2cc::figures {

struct ServingJob {
  double parameters = 0;
  int layers = 0;
  int hidden = 0;
  int kv_heads = 0;
  int head_size = 0;
  int tensor_parallel = 0;  // GPUs of one stage, all in one server
  int stages = 1;           // servers through which a token goes
  int prompt_tokens = 0;
  int output_tokens = 0;
  int batch = 1;                  // requests that decode together
  double weight_bytes = 2;        // an element of the weights, of an activation, of the cache
  double flops_per_s = 0;         // of one GPU, as reached
  double memory_bytes_per_s = 0;  // of one GPU, as reached
  bool separate_prefill = false;  // prefill and decode on different servers: the cache of a prompt crosses the network
};

// What crosses the network, bytes of one GPU.
struct ServingTraffic {
  double prefill_hops = 0;  // times prefill_bytes, one after the other
  double prefill_bytes = 0;
  double decode_hops = 0;
  double decode_bytes = 0;
  double cache_bytes = 0;  // once a request, where prefill is separate
};

ServingTraffic TrafficOf(const ServingJob& job);

struct ServingSeconds {
  double first_token = 0;       // TTFT
  double per_output_token = 0;  // TPOT
  double request = 0;           // from its arrival to its last token
};

// `hop_s(bytes)` is one transfer between two GPUs of different servers.
template <typename HopSeconds>
ServingSeconds Serve(const ServingJob& job, HopSeconds hop_s) {
  const ServingTraffic traffic = TrafficOf(job);
  const double prefill_s = 2 * job.parameters * job.prompt_tokens / (job.flops_per_s * job.tensor_parallel);
  const double read_s = job.parameters * job.weight_bytes / (job.memory_bytes_per_s * job.tensor_parallel);
  ServingSeconds seconds;
  seconds.first_token = prefill_s + traffic.prefill_hops * hop_s(traffic.prefill_bytes);
  if (traffic.cache_bytes > 0) seconds.first_token += hop_s(traffic.cache_bytes);
  seconds.per_output_token = read_s + traffic.decode_hops * hop_s(traffic.decode_bytes);
  seconds.request = seconds.first_token + (job.output_tokens - 1) * seconds.per_output_token;
  return seconds;
}

// Requests arrive at `utilisation` of what the service handles. It stops for `outage_s` within `window_s`: whoever comes meanwhile waits,
// and the backlog drains at the rest of the capacity. The mean wait over all requests of the window, seconds: outage^2 / (2 window
// (1 - utilisation)), from the area under the backlog. Requires that the backlog drains within the window.
double MeanWaitSeconds(double outage_s, double window_s, double utilisation);

}  // namespace r2cc::figures

#endif  // R2CC_TESTS_FIGURES_SERVING_H_
