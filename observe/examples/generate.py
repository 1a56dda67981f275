"""Taps Hugging Face's `generate` with a static cache, and compares each record with the hidden states that `generate` gives, byte
for byte.

    python3 generate.py [--model FOLDER_OR_NAME] [--tokens N]

It needs a GPU, PyTorch and transformers. Without --model it makes a small Llama of random weights. `generate` does not compile the model
here: a compiled step must have been checked without the compiler first.
"""

import argparse
import os
import sys

from r2cc import observe


def make_model(name):
  """On the GPU, in bfloat16."""
  import torch
  import transformers
  if name is not None:
    model = transformers.AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16)
  else:
    torch.manual_seed(1)
    config = transformers.LlamaConfig(hidden_size=512, intermediate_size=1024, num_hidden_layers=8, num_attention_heads=8,
                                      num_key_value_heads=4, vocab_size=4096)
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
  return model.to("cuda").eval()


def generate(model, prompt, tokens):
  """The tokens, and the hidden states of each step: a tuple of the embedding, each layer but the last, and the last one after its norm."""
  result = model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, cache_implementation="static",
                          disable_compile=True, pad_token_id=0, output_hidden_states=True, return_dict_in_generate=True)
  return result.sequences, result.hidden_states


def wrong_taps(step, states):
  """Names of the taps of `step` that are not what `generate` gave for it."""
  import torch
  wrong = []
  for layer, state in enumerate(states[1:-1]):
    bits = state.contiguous().view(torch.uint8).cpu().numpy().tobytes()
    if bytes(step[f"model.layers.{layer}"].data) != bits:
      wrong.append(f"model.layers.{layer}")
  return wrong


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--model")
  parser.add_argument("--tokens", type=int, default=64)
  asked = parser.parse_args()
  try:
    import torch
    import transformers  # pylint: disable=unused-import
  except ImportError as error:
    print(f"generate.py: {error}: it needs PyTorch and transformers", file=sys.stderr)
    return 2
  if not torch.cuda.is_available():
    print("generate.py: PyTorch finds no GPU", file=sys.stderr)
    return 2
  model, run = make_model(asked.model), f"generate-{os.getpid()}"
  prompt = torch.arange(1, 33, device="cuda").reshape(2, 16)
  plain, _ = generate(model, prompt, asked.tokens)
  request = torch.tensor([7, 8], device="cuda")
  with observe.attach(model, ["model.layers.*"], run=run, tags={"request": request}) as taps:
    generate(model, prompt, 3)  # the first step of each shape is checked and not taken
    torch.cuda.synchronize()
    taps.flush()
    skipped = taps.counters()["steps"]
    reader = observe.read(run)
    tapped, states = generate(model, prompt, asked.tokens)
    torch.cuda.synchronize()
    taps.flush()
    counts = taps.counters()
  with reader:  # it keeps what the run left
    items = [item for item in reader if isinstance(item, observe.Gap) or item.number >= skipped]
  for gap in (item for item in items if isinstance(item, observe.Gap)):
    print(gap)
  steps = [item for item in items if isinstance(item, observe.Step)]
  wrong = [(step.number, name) for step in steps for name in wrong_taps(step, states[step.number - skipped])]
  same = torch.equal(plain, tapped)
  print(f"{len(steps)} of {len(states)} steps were read, {len(wrong)} taps are wrong, the tokens are {'the same' if same else 'others'}")
  print(counts)
  return 0 if same and not wrong and len(steps) == len(states) else 1


if __name__ == "__main__":
  sys.exit(main())
