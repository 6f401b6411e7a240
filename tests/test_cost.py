"""What attention costs: the tables of papers and of known models, and laws."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlib import cost, heads, masks
from attnlib.shapes import ShapeError

steady = settings(derandomize=True, deadline=None, max_examples=60)
few = st.integers(1, 6)

# Parameters, against counts that were published.


def test_bert_and_gpt2():
    bert = cost.model_parameters(cost.BERT_BASE)
    assert bert.total == 109_482_240
    assert (bert.embedding, bert.attention, bert.mlp, bert.norms, bert.pooler) == (
        23_835_648,
        28_348_416,
        56_669_184,
        38_400,
        590_592,
    )
    gpt2 = cost.model_parameters(cost.GPT2_SMALL)
    assert gpt2.total == 124_439_808
    assert gpt2.embedding == 38_597_376 + 786_432
    assert gpt2.attention / gpt2.total == pytest.approx(0.228, abs=5e-4)
    assert bert.attention / bert.total == pytest.approx(0.259, abs=5e-4)


def test_a_model_with_a_gate_and_root_mean_square_norms():
    """Llama-2-7B, as it is published."""
    llama = cost.model_parameters(cost.LLAMA2_7B)
    assert llama.total == 6_738_415_616
    assert llama.attention == 32 * 4 * 4096**2


NOT_QUITE = {"d_model=256": 1, "d_model=1024": 3, "": 4}  # and the big model


@pytest.mark.parametrize(
    "row", cost.TABLE_3, ids=lambda row: f"{row.row} {row.changed}"
)
def test_table_3_of_the_transformer_paper(row):
    """The differences to the base model, added to the 65 million that it states."""
    base = cost.model_parameters(cost.TABLE_3[0].sizes).total
    difference = (cost.model_parameters(row.sizes).total - base) / 1e6
    if row.row == "A":
        assert difference == 0  # more heads are not more parameters
    slack = NOT_QUITE.get(row.changed, 1)
    assert abs(65 + difference - row.published) < slack
    assert base == pytest.approx(62.98e6, rel=1e-3)  # without biases and norms


@steady
@given(few, few, few, few, few, st.booleans())
def test_parameters_of_one_attention_are_those_of_lesson_04(
    n_kv, group, d_k, d_v, d_model, bias
):
    n_heads = n_kv * group
    sizes = {"n_kv_heads": n_kv, "d_k": d_k, "d_v": d_v, "bias": bias}
    one = cost.ModelSizes(
        n_tokens=0, d_model=d_model, n_heads=n_heads, d_mlp=0, n_layers=1, **sizes
    )
    wanted = heads.parameter_count(d_model, n_heads, **sizes)
    assert cost.model_parameters(one).attention == wanted


# FLOPs.


def test_core_and_projections_are_equal_at_twice_the_width():
    for d_model in (32, 64, 512):
        flops = cost.attention_flops(2 * d_model, d_model, 4)
        assert flops.core == flops.projections
    assert cost.attention_flops(128, 64, 4).core == 4_194_304


@steady
@given(st.integers(0, 40), few, few)
def test_the_core_is_4_n2_d_whatever_the_heads(n, n_heads, d):
    flops = cost.attention_flops(n, n_heads * d, n_heads)
    assert flops.core == 4 * n * n * n_heads * d
    assert flops.projections == 8 * n * (n_heads * d) ** 2
    assert flops.backward == 2 * flops.forward
    assert flops.training == 3 * flops.forward
    assert flops.flash_backward - flops.backward == flops.core // 2


@steady
@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4), st.integers(0, 4))
def test_pairs_are_those_of_the_masks(n_q, n_k, left, right):
    mask = masks.window(n_q, n_k, left=left, right=right)
    pairs = cost.allowed_pairs(n_q, n_k, left=left, right=right)
    assert pairs == mask.sum()
    assert cost.allowed_pairs(n_q, n_k, causal=True) == masks.causal(n_q, n_k).sum()
    assert cost.allowed_pairs(n_q, n_k) == n_q * n_k


@steady
@given(st.integers(1, 300))
def test_the_causal_share(n):
    assert cost.causal_share(n) == pytest.approx((n + 1) / (2 * n))
    assert cost.causal_share(1, n) == 1  # one new query sees all keys
    half = cost.attention_flops(n, 8, 2, causal=True).core
    full = cost.attention_flops(n, 8, 2).core
    assert half / full == pytest.approx(cost.causal_share(n))


def test_gated_mlps_have_three_products():
    assert cost.mlp_flops(7, 8, 32) == 4 * 7 * 8 * 32
    assert cost.mlp_flops(7, 8, 32, gated=True, batch=2) == 2 * 6 * 7 * 8 * 32


# The KV cache: the table of known models.

BYTES = {
    "GPT-2 small": 36_864,
    "GPT-2 XL": 307_200,
    "Llama-2-7B": 524_288,
    "Llama-2-13B": 819_200,
    "Llama-2-70B": 327_680,
    "Llama-3-8B": 131_072,
    "Mistral-7B": 131_072,
    "Llama-3.1-405B": 516_096,
    "DeepSeek-V2": 69_120,
    "DeepSeek-V3": 70_272,
}


@pytest.mark.parametrize("model", cost.KNOWN_CACHES, ids=lambda model: model.name)
def test_bytes_per_token_of_known_models(model):
    assert model.bytes_per_token == BYTES[model.name]
    assert model.source
    assert model.bytes_with_all_heads >= model.bytes_per_token


def test_every_known_model_is_tested():
    assert [model.name for model in cost.KNOWN_CACHES] == list(BYTES)


def test_groups_and_one_head_for_all_divide_the_cache():
    many, groups, one = (
        cost.cache_bytes(cost.kv_bytes_per_token(80, n, 128), 4096) / 2**30
        for n in (64, 8, 1)
    )
    assert (many, groups, one) == (10.0, 1.25, 0.15625)  # Llama-2-70B at 4096, GiB


def test_compressed_keys_take_what_two_and_a_quarter_groups_take():
    d_k = 128
    mla = cost.mla_bytes_per_token(60, 4 * d_k, d_k // 2)
    assert mla == 2.25 * cost.kv_bytes_per_token(60, 1, d_k)


def test_what_sharing_saves_in_known_models():
    saved = {
        m.name: m.bytes_with_all_heads / m.bytes_per_token for m in cost.KNOWN_CACHES
    }
    assert (saved["GPT-2 XL"], saved["Llama-3-8B"], saved["Llama-2-70B"]) == (1, 4, 8)
    # 128 heads, keys of 128 + 64 and values of 128, beside 512 + 64 numbers for all.
    assert saved["DeepSeek-V3"] == 128 * (128 + 64 + 128) / (512 + 64)


def test_a_window_caps_the_cache():
    mistral = next(m for m in cost.KNOWN_CACHES if m.name == "Mistral-7B")
    full, capped = (
        cost.cache_bytes(mistral.bytes_per_token, 32768, window=w)
        for w in (None, mistral.window)
    )
    assert (full, capped) == (2**32, 512 * 2**20)
    assert cost.cache_bytes(mistral.bytes_per_token, 100, window=4096) == 100 * 2**17


# What is refused.


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: cost.attention_flops(4, 10, 4),
            ShapeError,
            "d_model=10 is not a multiple of n_heads=4.",
        ),
        (
            lambda: cost.attention_flops(4, 12, 4, n_kv_heads=3),
            ShapeError,
            "n_heads=4 is not a multiple of n_kv_heads=3.",
        ),
        (
            lambda: cost.kv_bytes_per_token(2, -1, 64),
            ShapeError,
            "n_kv_heads must be at least 0, but it is -1.",
        ),
        (
            lambda: cost.cache_bytes(10, 4, window=0),
            ShapeError,
            "window must be at least 1, but it is 0.",
        ),
        (
            lambda: cost.checkpointing(4, 10, 10, segment=0),
            ShapeError,
            "segment must be at least 1, but it is 0.",
        ),
        (
            lambda: cost.score_bytes(4.5),
            TypeError,
            "n_q must be a whole number, but it is 4.5.",
        ),
        (
            lambda: cost.flash_traffic(4, 4, 2, block_q=0, block_k=1),
            ShapeError,
            "block_q must be at least 1, but it is 0.",
        ),
        (
            lambda: cost.roofline(0, 1, flops_per_second=1, bytes_per_second=1),
            ValueError,
            "flops must be larger than 0, but it is 0.",
        ),
    ],
)
def test_sizes_that_make_no_sense_are_named(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text
