"""This was not run with vLLM. It is a recipe: a worker of official vLLM 0.27 (V1 runner) whose model is tapped. No file of vLLM changes.

    PYTHONPATH=FOLDER_OF_THIS_FILE vllm serve MODEL --worker-cls vllm_worker.TappedWorker \\
        --compilation-config '{"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY"}' \\
        --additional-config '{"taps": ["model.layers.*:out[0]"]}'

Further keys of the additional configuration: `taps_run` (the run's name), `taps_rows` (tokens of a step; a larger step is not taken, and
counted), `taps_device_mib`. A record must fit twice into the ring on the GPU. A layer of vLLM gives two tensors: the hidden state is
out[0] + out[1]. In another process, observe.read("vllm").sequence("model.layers.3:out[0]", number_of("cmpl-...")) gives the rows of one
request by position. Positions that the prefix cache serves have no rows.
"""

import hashlib

import torch
from vllm.v1.worker.gpu_worker import Worker

from r2cc import observe


def number_of(request_id):
  """What a record has as the request: an identity is text, and a tag is numbers."""
  return int.from_bytes(hashlib.sha256(request_id.encode()).digest()[:8], "little") >> 1


def rows_of(request_ids, scheduled, computed):
  """The request and the position of each row of a step. The rows of a request are together, in the order of the runner's batch, which is
  not that of the scheduler's dictionary."""
  requests, positions = [], []
  for request_id, begin in zip(request_ids, computed):
    count = scheduled[request_id]
    requests += [number_of(request_id)] * count
    positions += range(int(begin), int(begin) + count)
  return requests, positions


class TappedWorker(Worker):
  """Each record's rows are the tokens of the step, with the tags `request` and `position`."""
  taps = None

  def compile_or_warm_up_model(self, *args, **kwargs):
    """Hooks are there before a graph is captured, and after the step that measures memory, which is larger than any other."""
    config = self.vllm_config
    if config.speculative_config is not None:
      raise RuntimeError("tensor taps: rows of drafted tokens are not mapped; run without speculative decoding")
    if int(config.compilation_config.mode or 0) != 0:
      raise RuntimeError("tensor taps: hooks do not run in a model that is compiled; pass --compilation-config '{\"mode\": 0, ...}'")
    if config.parallel_config.pipeline_parallel_size > 1:
      raise RuntimeError("tensor taps: a pipeline has several batches at once, and their rows are not told apart")
    self._attach(config.additional_config or {})
    return super().compile_or_warm_up_model(*args, **kwargs)

  def _attach(self, wanted):
    self.rows_most = int(wanted.get("taps_rows", 64))
    self.requests, self.positions = [torch.zeros(self.rows_most, dtype=torch.int64, device=self.device) for _ in range(2)]
    self.count = torch.zeros(1, dtype=torch.int64, device=self.device)
    every_row = torch.arange(self.rows_most, dtype=torch.int64, device=self.device)
    self.taps = observe.attach(
        self.get_model(), wanted.get("taps", ["model.layers.*:out[0]", "model.layers.*:out[1]"]), run=wanted.get("taps_run", "vllm"),
        rank=self.rank, tags={"request": self.requests, "position": self.positions}, rows=(every_row, self.count),
        policy=observe.Policy(device_mib=float(wanted.get("taps_device_mib", 64))))
    prepare = self.model_runner._prepare_inputs

    def prepare_and_name(scheduler_output, *args, **kwargs):
      result = prepare(scheduler_output, *args, **kwargs)
      self._name_rows(scheduler_output)
      return result

    self.model_runner._prepare_inputs = prepare_and_name

  def _name_rows(self, scheduler_output):
    batch = self.model_runner.input_batch
    requests, positions = rows_of(batch.req_ids[:batch.num_reqs], scheduler_output.num_scheduled_tokens, batch.num_computed_tokens_cpu)
    for buffer, numbers in ((self.requests, requests), (self.positions, positions)):
      named = numbers[:self.rows_most]
      buffer[:len(named)].copy_(torch.tensor(named, dtype=torch.int64))
    self.count.fill_(len(requests))  # beyond rows_most: the step is not taken

  def execute_model(self, *args, **kwargs):
    try:
      return super().execute_model(*args, **kwargs)
    finally:
      if self.taps is not None:
        self.count.zero_()  # a step that nobody asked for, as idle ranks run it, has no rows

  def shutdown(self, *args, **kwargs):
    if self.taps is not None:
      self.taps.close()
    return super().shutdown(*args, **kwargs)
