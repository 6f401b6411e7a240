"""SmolLM2: transformers' and gguf's numbers, and what its heads are known to do."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from real_models import SENTENCES, agree, needs, reference
from torch_tools import one_thread

from attnlib.head_diagnostics import induction_score, offset_mass, sink_mass
from attnlib.nn.language import LayerStages
from attnlib.nn.models import smollm2
from attnlib.shapes import ShapeError

__all__ = ["one_thread"]
pytestmark = needs("smollm2")


@pytest.fixture(scope="module")
def model() -> smollm2.SmolLM2:
    return smollm2.load()


def test_the_sizes_are_those_of_the_file(model: smollm2.SmolLM2) -> None:
    facts, sizes = model.file.facts, smollm2.SIZES
    assert facts["llama.block_count"] == sizes.n_layers
    assert facts["llama.embedding_length"] == sizes.d_model
    assert facts["llama.attention.head_count"] == sizes.n_heads
    assert facts["llama.attention.head_count_kv"] == sizes.n_kv_heads
    assert facts["llama.rope.dimension_count"] == sizes.d_k
    assert facts["llama.feed_forward_length"] == sizes.d_mlp
    assert facts["llama.context_length"] == sizes.n_context
    assert facts["llama.rope.freq_base"] == sizes.base
    assert facts["llama.vocab_size"] == sizes.n_tokens
    assert facts["llama.attention.layer_norm_rms_epsilon"] == pytest.approx(1e-5)


def test_weights_are_those_of_the_library_gguf(model: smollm2.SmolLM2) -> None:
    for name, theirs in reference("smollm2")["tensors"].items():
        agree(model.file.tensor(name), theirs, atol=1e-8)


def test_texts_are_cut_as_transformers_cuts_them(model: smollm2.SmolLM2) -> None:
    for text, ids in reference("smollm2")["cut"].items():
        assert model.encode(text).tolist() == ids
    ids = model.encode("The cat chased")
    assert model.tokens(ids) == ["The", " cat", " chased"]


def test_it_computes_what_transformers_computes(model: smollm2.SmolLM2) -> None:
    theirs = reference("smollm2")
    ids = model.encode(theirs["prompt"])
    assert ids.tolist() == theirs["ids"]
    kept: list[torch.Tensor] = []
    hidden = model.read(ids, lambda layer, stages: kept.append(stages.weights))
    agree(model.logits(hidden), theirs["logits"], atol=2e-4)
    agree(torch.stack(kept), theirs["weights"], atol=1e-5)
    (token, chance), *_ = model.likeliest(theirs["prompt"])
    assert token == " Paris"
    assert chance == pytest.approx(theirs["p_paris"], abs=1e-5)
    assert chance == pytest.approx(0.7725, abs=1e-4)


def test_watching_changes_nothing_and_sees_each_layer(model: smollm2.SmolLM2) -> None:
    ids = model.encode("The cat chased the mouse")
    seen: list[tuple[int, LayerStages]] = []
    watched = model.read(ids, lambda layer, stages: seen.append((layer, stages)))
    assert torch.equal(watched, model.read(ids))
    assert [layer for layer, _ in seen] == list(range(30))
    for (_, before), (_, after) in pairwise(seen):
        assert torch.equal(before.result, after.x)
    layer = model.layer(17)
    again = layer(seen[17][1].x, return_stages=True)
    assert torch.equal(again.weights, seen[17][1].weights)
    assert not watched.requires_grad


def test_a_head_that_is_taken_away_adds_nothing(model: smollm2.SmolLM2) -> None:
    """Layer 3 without head 7 adds what its other eight heads found, and no more."""
    ids = model.encode("The cat chased the mouse")
    whole: list[LayerStages] = []
    before = model.read(ids, lambda _, stages: whole.append(stages))
    less: list[LayerStages] = []
    model.read(ids, lambda _, stages: less.append(stages), without=[(3, 7)])
    W_o = model.layer(3).attention.W_o.weight
    found = whole[3].mixed[7] @ W_o[:, 7 * 64 : 8 * 64].T
    assert float(found.abs().max()) > 0.01
    torch.testing.assert_close(less[3].out, whole[3].out - found, rtol=0, atol=1e-5)
    assert torch.equal(less[3].weights, whole[3].weights)
    assert not torch.equal(less[4].x, whole[4].x)
    assert torch.equal(model.read(ids), before)  # and afterwards it is there again


@pytest.mark.parametrize("head", [(30, 0), (0, 9), (-1, 0)])
def test_a_head_that_does_not_exist(
    model: smollm2.SmolLM2, head: tuple[int, int]
) -> None:
    with pytest.raises(ShapeError, match="layers are 0 to 29, and their heads 0 to 8"):
        model.read(torch.tensor([4, 8]), without=[head])


def test_texts_together_are_what_they_are_alone(model: smollm2.SmolLM2) -> None:
    both = torch.stack([model.encode("The cat ran home"), torch.tensor([5, 9, 70, 3])])
    hidden = model.read(both)
    torch.testing.assert_close(hidden[1], model.read(both[1]), rtol=0, atol=1e-3)


def test_induction_and_previous_token_heads(model: smollm2.SmolLM2) -> None:
    """facts: induction 18.6 (.82), 17.4 (.66); previous token 16.0 (.86), 11.1."""
    n, generator = 24, torch.Generator().manual_seed(0)
    once = torch.stack(
        [torch.randint(100, 40000, (n,), generator=generator) for _ in range(3)]
    )
    ids = torch.cat([torch.ones(3, 1, dtype=torch.long), once, once], dim=1)
    induction, previous, sink = [], [], []

    def watch(layer: int, stages: LayerStages) -> None:
        w = stages.weights.numpy()
        # The first of them to come again is the second token: start=2.
        induction.append(induction_score(w, period=n, start=2).mean(axis=0))
        previous.append(offset_mass(w[..., 2:, :], 1).mean(axis=0))
        sink.append(sink_mass(w[..., 1:, :]).mean(axis=0))

    logits = model.logits(model.read(ids, watch))
    heads = np.array(induction)
    assert np.unravel_index(heads.argmax(), heads.shape) == (18, 6)
    assert heads[18, 6] == pytest.approx(0.82, abs=0.02)
    assert heads[17, 4] == pytest.approx(0.66, abs=0.02)
    assert int((heads > 0.4).sum()) == 7
    heads = np.array(previous)
    assert np.unravel_index(heads.argmax(), heads.shape) == (16, 0)
    assert heads[16, 0] == pytest.approx(0.86, abs=0.02)
    assert heads[11, 1] == pytest.approx(0.83, abs=0.02)
    losses = torch.nn.functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none"
    ).reshape(3, -1)
    first, second = losses[:, 1:n].mean(dim=1), losses[:, n + 1 :].mean(dim=1)
    assert float(first.min()) > 14
    assert float(second.max()) < 6


def test_half_of_all_attention_goes_to_the_first_token(model: smollm2.SmolLM2) -> None:
    """facts: .58 on average, .06 to .09 in the first two layers, .90 in layer 24."""
    texts = [model.encode(sentence)[:10] for sentence in SENTENCES]
    sink: list[np.ndarray] = []
    model.read(
        torch.stack(texts),
        lambda layer, stages: sink.append(
            sink_mass(stages.weights.numpy()[..., 4:-1, :]).mean(axis=0)
        ),
    )
    by_layer = np.array(sink).mean(axis=1)
    assert by_layer.mean() == pytest.approx(0.58, abs=0.06)
    assert by_layer[:2].max() < 0.15
    assert by_layer[24] > 0.85


@pytest.mark.parametrize("ids", [torch.tensor(3), torch.zeros(0), torch.zeros(8193)])
def test_a_text_that_does_not_fit(model: smollm2.SmolLM2, ids: torch.Tensor) -> None:
    n = ids.shape[-1] if ids.ndim else 0
    with pytest.raises(ShapeError, match=f"1 to 8192 tokens a text, and got {n}"):
        model.read(ids)


def test_the_learners_random_numbers_stay(model: smollm2.SmolLM2) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    model.read(torch.tensor([4, 8]))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_it_takes_little_memory() -> None:
    """All layers at once would be 425 MB, on top of 220 for torch and 98 mapped."""
    code = (
        "import re, torch; from pathlib import Path\n"
        "from attnlib.nn.models import smollm2\n"
        "smollm2.load().read(torch.arange(100, 400), lambda layer, stages: None)\n"
        "status = Path('/proc/self/status').read_text()\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+) kB', status)[1]) / 1000)\n"
    )
    command = [sys.executable, "-c", code]
    one = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=one, check=False)
    assert float(done.stdout) < 600, done.stderr
