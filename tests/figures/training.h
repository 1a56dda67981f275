// A training iteration in closed form: compute, tensor, pipeline and data parallel traffic, one after the other but for what of the
// gradients' AllReduce overlaps with the backward pass.
//
// Per pipeline stage and micro-batch: compute, 4 AllReduces a layer inside the server (tensor parallel: two forward, two backward) and 2
// transfers between stages (activations forward, their gradients back). 1F1B runs micro_batches + stages - 1 such slots one after the
// other (Narayanan et al., SC21). Then each group of data parallel peers sums its gradients, and the first and the last stage the
// gradients of the embedding that they share.
#ifndef R2CC_TESTS_FIGURES_TRAINING_H_
#define R2CC_TESTS_FIGURES_TRAINING_H_

namespace r2cc::figures {

// A decoder as GPT-3's table 2.1 describes it (Brown et al. 2020).
struct Model {
  double parameters = 0;
  int layers = 0;
  int hidden = 0;
  int sequence_tokens = 0;
  int vocabulary = 0;
};

struct TrainingJob {
  Model model;
  int servers = 0;
  int gpus_per_server = 8;
  int tensor_parallel = 1;
  int pipeline_stages = 1;
  double batch_tokens = 0;  // of one iteration, all GPUs
  int micro_batch_sequences = 1;
  double gradient_bytes = 4;    // an element of a gradient as it is summed
  double activation_bytes = 2;  // an element of an activation
  double overlap = 0;           // share of the backward pass behind which gradients can travel

  int gpus() const { return servers * gpus_per_server; }
  int data_parallel() const { return gpus() / (tensor_parallel * pipeline_stages); }
};

// Bytes that one GPU hands to the network in an iteration.
struct Traffic {
  int slots = 0;               // of the pipeline: micro-batches + stages - 1
  double tensor_bytes = 0;     // AllReduced inside the server, in each slot
  double stage_bytes = 0;      // sent to the next stage, and the same again to the previous one, in each slot
  double gradient_bytes = 0;   // AllReduced among data_parallel() GPUs, once
  double embedding_bytes = 0;  // AllReduced between the first and the last stage, once
};

Traffic TrafficOf(const TrainingJob& job);

// Seconds that the traffic takes: the caller knows the network. Transfers are of one direction, once.
struct TrafficSeconds {
  double tensor = 0;
  double stage = 0;
  double gradient = 0;
  double embedding = 0;
};

// Seconds of an iteration; `compute_s` is one GPU's in one slot, a third forward and two thirds backward.
double IterationSeconds(const TrainingJob& job, double compute_s, const TrafficSeconds& traffic);

// The `compute_s` with which a job without faults handles `tokens_per_s`; negative where the traffic alone takes longer than that.
double CalibratedComputeSeconds(const TrainingJob& job, double tokens_per_s, const TrafficSeconds& healthy);

}  // namespace r2cc::figures

#endif  // R2CC_TESTS_FIGURES_TRAINING_H_
