"""`examine` names what is wrong, with the number that gave it away, no more."""

from __future__ import annotations

import random
import time
import warnings

import numpy as np
import pytest
import torch
from examined import MODULES, RIGHT, WRONG, Dropping, Heads, attend, causal, plain
from test_clinic_subject_untouched import everything
from torch import nn

from attnlib.clinic import examine
from attnlib.clinic.catalogue import get
from attnlib.nn import MultiHeadAttention

FEATURES = {
    "causal": ("causal by itself",),
    "windowed": ("causal by itself", "a window of 3 keys"),
    "capped": ("scores capped at 5",),
    "normed": ("queries and keys of length 1", "scores multiplied by 10"),
    "ALiBi": ("ALiBi",),
}
NO_MASK = "It takes no mask, so masks were not tested."


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other cost more than these small arrays."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def seeded(make):
    torch.manual_seed(0)
    return make()


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_healthy(name):
    attention, meant = RIGHT[name]
    report = examine(attention, **meant)
    assert report.healthy, str(report)
    assert (report.codes, report.mistakes, report.unknown) == ((), (), None)
    assert report.refused == ""
    assert {c.code for c in report.cautions} <= {"M35", "M45"}
    said = report.features + report.meant
    assert sorted(said) == sorted(FEATURES.get(name.split(",")[0], said))


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name):
    attention, meant, keys = WRONG[name]
    report = examine(attention, **meant)
    assert not report.healthy
    assert [mistake.key for mistake in report.mistakes] == keys, str(report)
    wanted = ["online_out" if k.startswith("online_out") else k for k in keys]
    assert report.codes == tuple(dict.fromkeys(get(key).code for key in wanted))
    assert report.unknown is None
    for mistake in report.mistakes:
        assert mistake.evidence.endswith(".")
        assert mistake.mend
        assert mistake.measured is not None
        assert mistake.measured != pytest.approx(mistake.expected, rel=0.02)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_told(name):
    make, keys = MODULES[name]
    report = examine(seeded(make))
    assert [mistake.key for mistake in report.mistakes] == keys, str(report)
    assert report.unknown is None
    assert not report.refused


def evidence(name):
    attention, meant, _ = WRONG[name]
    return " ".join(examine(attention, **meant).evidence.values())


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("no scale", ("3.162 times", "√d_k is 3.162")),
        ("divided by d_k", ("0.316 times", "1/√d_k is 0.316")),
        ("softmax over queries", ("columns sum to 1",)),
        ("hidden after the softmax", ("0.261, not to 1",)),
        ("mask inverted", ("gives 1 of its weight to keys it may not look at",)),
        ("a weak fill", ("a score of -1e+04",)),
        ("an empty row is NaN", ("1 may look at nothing", "NaN throughout")),
        ("not stable", ("96 of 96 numbers are not finite",)),
        ("long blocks without rescaling", ("blocks of 64 keys",)),
    ],
)
def test_the_evidence_holds_the_measured_number(name, numbers):
    said = evidence(name).replace("With", "with")
    for number in numbers:
        assert number in said, said


def test_the_evidence_is_measured_not_recited():
    """√d_k of a module with wider heads is another number."""
    report = examine(seeded(MODULES["no scale"][0]))
    assert "2.449 times" in report.evidence["M01"]  # d_k is 6


def test_the_weights_of_the_x_ray_are_those_of_the_attention():
    attention, meant, _ = WRONG["softmax over queries"]
    report = examine(attention, **meant)
    assert report.weights.shape == report.right_weights.shape
    np.testing.assert_allclose(report.right_weights.sum(-1), 1.0)
    np.testing.assert_allclose(report.weights.sum(-2), 1.0)


def test_what_was_not_tested_is_said():
    assert NO_MASK in examine(plain).untested
    assert NO_MASK not in examine(RIGHT["with a mask"][0]).untested


def test_a_name_is_given_only_to_what_fits_everywhere():
    def odd(q, k, v):
        return np.tanh(attend(q, k, v)) * 1.7

    report = examine(odd)
    assert not report.healthy
    assert report.codes == ()
    assert "each row of weights sums to 1" in report.unknown.law
    assert "v = [[[[" in report.unknown.example  # small enough to be typed in


def test_zeros_have_no_name():
    report = examine(lambda q, k, v: np.zeros((*q.shape[:-1], v.shape[-1])))
    assert (report.codes, report.healthy) == ((), False)
    assert report.unknown is not None


# What cannot be examined, and what the report says of it.


def gives(value):
    return lambda q, k, v: value


def raises(q, k, v):
    raise KeyError("no")


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (None, "None was handed in, which cannot be called"),
        (3, "An object of class int was handed in"),
        (int, "int is a class"),
        (lambda: 1, "takes (nothing), and not q, k and v"),
        (gives(None), "returned None (is a `return` missing?)"),
        (raises, "raised KeyError: 'no'"),
        (lambda q, k, v: plain(q, k, v) * np.nan, "returned NaN everywhere"),
        (lambda q, k, v: plain(q, k, v)[..., :1], "returned shape (2, 4, 1)"),
    ],
    ids=range(8),
)
def test_what_cannot_be_examined_is_refused_in_a_sentence(thing, said):
    report = examine(thing)
    assert said in report.refused
    assert not report.healthy
    assert (report.mistakes, report.unknown) == ((), None)


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"mask": "hidden"}, "mask must be one of 'may look', 'blocked', 'added', but"),
        ({"dtype": "float8"}, "dtype must be one of 'float16', 'bfloat16', 'float32'"),
        ({"rope": "both"}, "rope must be one of 'interleaved', 'half', but it is 'bo"),
        ({"mask": True}, "mask must be one of 'may look', 'blocked', 'added', but"),
        ({"dtype": torch.float16}, "'float64', but it is torch.float16"),
        ({"scale": 0}, "scale must be a number above 0, but it is 0"),
        ({"scale": float("nan")}, "scale must be a number above 0, but it is nan"),
        ({"scale": "1/8"}, "scale must be a number above 0, but it is '1/8'"),
        ({"softcap": -1.0}, "softcap must be a number above 0, but it is -1.0"),
        ({"softcap": np.inf}, "softcap must be a number above 0, but it is inf"),
        ({"window": 2.5}, "window must be a whole number from 1 on, but it is 2.5"),
        ({"window": True}, "window must be a whole number from 1 on, but it is True"),
        ({"window": 0}, "window must be a whole number from 1 on, but it is 0"),
        ({"rope_base": -2}, "rope_base must be a number above 0, but it is -2"),
        ({"n_heads": "4"}, "n_heads must be a whole number from 1 on, but it is '4'"),
        ({"n_heads": 4, "n_kv_heads": 8}, "n_kv_heads must divide n_heads, but 8"),
        ({"causal": "yes"}, "causal must be True or False, but it is 'yes'"),
        ({"empty_rows": None}, "empty_rows must be True or False, but it is None"),
        ({"seed": -1}, "seed must be a whole number from 0 on, but it is -1"),
        ({"seconds": None}, "seconds must be a number above 0, but it is None"),
    ],
    ids=str,
)
def test_a_keyword_without_such_a_value_is_an_error(keywords, said):
    with pytest.raises(ValueError, match="must ") as error:
        examine(plain, **keywords)
    assert said in str(error.value)


# Manners: what examining leaves as it was.


@pytest.mark.parametrize("make", [Heads, Dropping, MODULES["mask"][0]])
@pytest.mark.parametrize("training", [True, False])
def test_a_module_is_not_changed(make, training):
    module = seeded(make).train(training)
    module.register_forward_hook(lambda module, args, out: None)
    module(torch.ones(1, 2, 24)).sum().backward()
    before = everything(module)
    examine(module)
    assert everything(module) == before


def dice():
    state = np.random.get_state()  # noqa: NPY002
    return (
        random.getstate(),
        state[1].tolist(),
        state[2:],
        torch.get_rng_state().tolist(),
    )


def noisy(q, k, v):
    random.random()
    noise = np.random.random((*q.shape[:-1], v.shape[-1]))  # noqa: NPY002
    return plain(q, k, v) + 0.01 * noise


def reseeding(q, k, v):
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    return plain(q, k, v)


@pytest.mark.parametrize("thing", [plain, noisy, reseeding, Heads, Dropping])
def test_the_random_state_stays(thing):
    thing = seeded(thing) if isinstance(thing, type) else thing
    before = dice()
    examine(thing)
    assert dice() == before


def test_the_settings_of_numpy_and_torch_stay():
    def careless(q, k, v):
        np.seterr(all="ignore")
        torch.set_grad_enabled(False)
        return plain(q, k, v)

    before = np.geterr(), torch.is_grad_enabled(), torch.get_default_dtype()
    try:
        examine(careless)
        after = np.geterr(), torch.is_grad_enabled(), torch.get_default_dtype()
    finally:
        np.seterr(**before[0])
        torch.set_grad_enabled(before[1])
    assert after == before


def test_what_the_attention_prints_and_warns_is_not_shown(capsys):
    def loud(q, k, v):
        print("here I am")
        warnings.warn("and here", UserWarning, stacklevel=2)
        return plain(q, k, v)

    assert examine(loud).healthy  # a warning would be an error here
    assert capsys.readouterr() == ("", "")


def test_writing_into_arguments_is_wrong_without_a_name():
    def writes(q, k, v):
        out = plain(q, k, v)
        q *= 0
        v += 1
        return out

    report = examine(writes)
    assert not report.healthy
    assert not report.mistakes
    assert report.unknown is not None
    assert "q and v" in report.unknown.sentence


def test_what_is_slow_is_not_called_wrong():
    def slow(q, k, v):
        time.sleep(0.05)
        return plain(q, k, v)

    report = examine(slow, seconds=0.3)
    assert "did not come to an end in the time" in report.refused
    assert report.mistakes == ()
    assert report.unknown is None


def test_dropout_that_is_never_off_is_found_with_what_is_wrong_besides():
    rng = np.random.default_rng(0)

    def dropping(q, k, v, scale=None):
        def drop(w, _):
            return w * (rng.random(w.shape) < 0.8) / 0.8

        return attend(q, k, v, scale=scale, after=drop)

    assert examine(dropping).codes == ("M34",)
    assert examine(lambda q, k, v: dropping(q, k, v, 1.0)).codes == ("M34", "M01")


@pytest.mark.parametrize("name", ["no scale", "a weak fill", "another cap"])
def test_the_same_seed_gives_the_same_report(name):
    attention, meant, _ = WRONG[name]
    first, again = (str(examine(attention, **meant, seed=3)) for _ in range(2))
    assert first == again


@pytest.mark.parametrize("seed", range(1, 9))
def test_other_numbers_give_the_same_names(seed):
    for name in ("no scale", "keys ask", "mask ignored", "causal from the start"):
        attention, meant, keys = WRONG[name]
        report = examine(attention, **meant, seed=seed)
        assert [mistake.key for mistake in report.mistakes] == keys, name
    for name in ("with a mask", "windowed", "capped", "normed"):
        attention, meant = RIGHT[name]
        assert examine(attention, **meant, seed=seed).healthy, name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_may_be_asked_in_another_type(dtype):
    assert examine(RIGHT["with a mask"][0], dtype=dtype).healthy
    report = examine(WRONG["no scale"][0], dtype=dtype)
    assert report.codes == ("M01",)


def test_a_large_module_is_examined():
    assert examine(seeded(lambda: Heads(512, 8))).healthy


def test_pytorchs_own_is_healthy():
    mha = seeded(lambda: nn.MultiheadAttention(12, 3, batch_first=True))
    assert examine(mha).healthy


def test_the_librarys_own_is_healthy():
    """It has a cache, and hides the future only where it is told to."""
    assert examine(seeded(lambda: MultiHeadAttention(24, 4, n_kv_heads=2))).healthy


def test_what_is_meant_decides_what_is_wrong():
    assert examine(causal).healthy
    assert examine(causal, causal=True).healthy
    assert examine(plain, causal=True).codes == ("M16",)
    doubled = RIGHT["scaled by 2, as is meant"][0]
    assert not examine(doubled).healthy
    assert examine(doubled, scale=2.0).healthy
