"""How real_models.json was made, once, in an environment of its own:

    pip install torch transformers safetensors tokenizers ctranslate2 gguf accelerate
    python tests/data/real_models.py     (with the real models and attnlib installed)

MiniLM: transformers' BertModel with attn_implementation="eager". SmolLM2: transformers'
LlamaModel from the GGUF file, and gguf's own dequantize. Whisper: ctranslate2 from the
picture of the sound that attnlib computes, and its own alignment for the word times.
Nothing else of attnlib is used. The tests need neither of these packages.
"""

import json
from pathlib import Path

import ctranslate2
import gguf
import numpy as np
import torch
import transformers
from tokenizers import Tokenizer

from attnlib import checkpoints
from attnlib.nn.models.sound import log_mel
from attnlib.nn.models.whisper import spoken_cat

torch.set_grad_enabled(False)
torch.set_num_threads(1)
SENTENCE = "The cat that chased the mouse was hungry, so it ran into the kitchen."
PROMPT = "The capital of France is"


def some(array, n=12, seed=0):
    """A few places of an array and what stands there, and its sum of absolutes."""
    array = np.asarray(array, dtype=np.float64)
    rng = np.random.default_rng(seed)
    places = [tuple(int(rng.integers(size)) for size in array.shape) for _ in range(n)]
    return {
        "shape": list(array.shape),
        "places": places,
        "values": [float(array[place]) for place in places],
        "mean": float(np.abs(array).mean()),
    }


def minilm():
    folder = checkpoints.find("minilm")["weights"].parent
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager")
    cut = tokenizer.encode(SENTENCE)
    found = model.eval()(
        torch.tensor([cut.ids]), output_attentions=True, output_hidden_states=True
    )
    return {
        "sentence": SENTENCE,
        "tokens": cut.tokens,
        "weights": some(torch.cat(found.attentions)),
        "hidden": some(torch.cat(found.hidden_states)),
    }


def smollm2():
    path = checkpoints.find("smollm2")["weights"]
    where = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        **where, attn_implementation="eager", dtype=torch.float32
    )
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    texts = [SENTENCE, "In 2024, 猫 cost $1,350!\n\n  It's OK."]
    found = model.eval()(ids, output_attentions=True)
    reader = gguf.GGUFReader(path)
    named = {tensor.name: tensor for tensor in reader.tensors}
    stored = {}
    for name in ("token_embd.weight", "blk.7.ffn_down.weight", "blk.29.attn_k.weight"):
        tensor = named[name]
        stored[name] = some(gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    return {
        "prompt": PROMPT,
        "ids": ids[0].tolist(),
        "cut": {text: tokenizer(text).input_ids for text in texts},
        "logits": some(found.logits[0], n=20),
        "weights": some(torch.cat(found.attentions)),
        "p_paris": float(found.logits[0, -1].softmax(-1).max()),
        "tensors": stored,
    }


def whisper():
    folder = checkpoints.find("whisper")["weights"].parent
    model = ctranslate2.models.Whisper(str(folder), compute_type="float32")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    sound = spoken_cat()
    picture = np.ascontiguousarray(log_mel(sound)[None].numpy())
    frames = model.encode(ctranslate2.StorageView.from_array(picture))
    start = ["<|startoftranscript|>", "<|notimestamps|>"]
    start = [tokenizer.token_to_id(token) for token in start]
    (written,) = model.generate(frames, [start], beam_size=1)
    ids = written.sequences_ids[0]
    (aligned,) = model.align(frames, start[:1], [ids], [round(len(sound) / 160)])
    starts = {}
    for token, frame in aligned.alignments:
        starts.setdefault(token, frame / 50)
    return {
        "frames": some(np.array(frames)[0]),
        "text": tokenizer.decode(ids).strip(),
        "starts": [
            [tokenizer.decode([i]).strip(), starts[n]] for n, i in enumerate(ids)
        ],
        "end": starts[len(ids)],
    }


if __name__ == "__main__":
    made = {"minilm": minilm(), "whisper": whisper(), "smollm2": smollm2()}
    packages = (torch, transformers, ctranslate2)
    made["made with"] = {p.__name__: str(p.__version__) for p in packages}
    models = []  # a line a fact
    for name, facts in made.items():
        lines = [
            f"{json.dumps(fact)}: {json.dumps(value, ensure_ascii=False)}"
            for fact, value in facts.items()
        ]
        models.append(f'"{name}": {{\n' + ",\n".join(lines) + "}")
    text = "{" + ",\n\n".join(models) + "}\n"
    Path(__file__).with_suffix(".json").write_text(text, encoding="utf-8")
