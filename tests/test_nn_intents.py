"""The help desk: templates, requests, calls, and the models that answer them."""

from __future__ import annotations

import json
import random
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from torch_tools import in_float64, one_thread  # noqa: F401 - fixtures for every test

from attnlib import lowrank, masks
from attnlib.attention import scaled_dot_product
from attnlib.nn import calls, desk, intents, ways
from attnlib.nn.templates import Grammar, read
from attnlib.shapes import ShapeError

# The stored numbers of lesson 15 are of these files.
FILES = {
    "en": "65a7162518fffb15bd07590ff1c630bc45eedd5065738eeea96ce2f8d0cc02be",
    "zh-CN": "02a971118aca765289f9271ff5e93db6d56fc2617330045266fb4c449c0b7a17",
}


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# --- templates -----------------------------------------------------------------------
def everything(template: str, **lists: list[str]) -> set[str]:
    grammar = Grammar(lists, {"the": "[the]"})
    luck = random.Random(0)
    return {grammar.draw(template, luck) for _ in range(300)}


@pytest.mark.parametrize(
    ("template", "sentences"),
    [
        ("on", {"on"}),
        ("(on|off)", {"on", "off"}),
        ("turn (on|off) [now]", {f"turn {a}" for a in ("on", "off", "on now",
                                                       "off now")}),
        ("(a;b;c)", {"a b c", "a c b", "b a c", "b c a", "c a b", "c b a"}),
        ("[a|b] c", {"a c", "b c", "c"}),
        ("[a ][b ]c", {"a b c", "a c", "b c", "c"}),
        ("(a[x]|b) d", {"a d", "ax d", "b d"}),
        ("<the> {name:device}", {"the lamp", "lamp", "the tv", "tv"}),
        ("a  |b", {"a", "b"}),
        ("", {""}),
    ],
)  # fmt: skip
def test_a_template_says_all_that_it_can_and_nothing_else(template, sentences):
    assert everything(template, name=["lamp", "tv"]) == sentences


def test_a_list_may_hold_templates_and_free_order_may_have_no_space():
    assert everything("{name}", name=["lamp[s]"]) == {"lamp", "lamps"}
    joined = Grammar({}, {}, between="")
    found = {joined.draw("(a;b)", random.Random(seed)) for seed in range(9)}
    assert found == {"ab", "ba"}


@pytest.mark.parametrize("template", ["(a", "[a", "a)", "(a]", "{a", "<a", "a]b"])
def test_brackets_that_do_not_fit_are_refused(template):
    with pytest.raises(ValueError, match=r"closed|closes nothing"):
        read(template)


def test_templates_in_a_ring_are_refused():
    with pytest.raises(ValueError, match="name each other in a ring"):
        Grammar({}, {"a": "<b>", "b": "<a>"}).draw("<a>", random.Random(0))


def test_all_templates_of_the_package_can_be_read_and_drawn():
    luck = random.Random(0)
    for language in intents.LANGUAGES:
        grammar = intents._grammar(language)
        for rows in intents.templates(language).values():
            for row in rows:
                sentence = grammar.draw(row, luck)
                assert sentence
                assert not set(sentence) & set("[](){}<>|;")


# --- requests ------------------------------------------------------------------------
@pytest.mark.parametrize("language", FILES)
def test_the_sentences_are_those_of_the_pinned_package(language):
    folder = Path(find_spec("home_assistant_intents").origin).parent
    content = (folder / "data" / f"{language}.json").read_bytes()
    assert sha256(content).hexdigest() == FILES[language]


@pytest.mark.parametrize(("language", "n_intents"), [("en", 27), ("zh-CN", 40)])
def test_no_sentence_and_no_template_of_the_test_is_trained_on(language, n_intents):
    found = intents.help_desk(language)
    assert len(found.intents) == n_intents
    assert not set(found.known.texts) & set(found.unseen.texts)
    assert len(set(found.unseen.texts)) == len(found.unseen.texts)
    assert set(found.unseen.answers.tolist()) == set(range(n_intents))
    assert torch.bincount(found.known.answers).tolist() == [40] * n_intents
    for rows in intents.templates(language).values():
        kept, aside = intents.split(rows, 0)
        assert not set(kept) & set(aside)
        assert sorted(kept + aside) == sorted(rows)
        assert len(aside) == max(1, len(rows) // 4)


def test_ids_say_the_sentence():
    found = intents.help_desk("en")
    for part in (found.known, found.unseen):
        assert part.ids.shape[1] % 4 == 0
        for text, row, real in zip(part.texts, part.ids, part.real, strict=True):
            ids = row[real].tolist()
            assert ids == found.encode(text)
            assert intents.FILLER not in ids
            words = [w if w in found.vocabulary else "<unknown>"
                     for w in intents.tokens(text)]  # fmt: skip
            assert found.decode(ids) == " ".join(words)
    assert (found.known.ids != intents.UNKNOWN).all()


def test_the_same_seed_gives_the_same_desk_and_another_seed_another_split():
    again = intents.help_desk.__wrapped__("en")
    assert again.known.texts == intents.help_desk("en").known.texts
    other = intents.help_desk.__wrapped__("en", seed=1)
    assert set(other.unseen.texts) != set(again.unseen.texts)


def test_a_language_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="language='fr' is none of 'en', 'zh-CN'"):
        intents.help_desk("fr")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(intents, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="home-assistant-intents is missing"):
        intents.templates("en")


def test_one_template_cannot_be_split():
    with pytest.raises(ValueError, match="1 template cannot be split"):
        intents.split(["a"], 0)


def test_our_words_are_there_for_each_list_without_any():
    ours = json.loads(intents.WORDS.read_text(encoding="utf-8"))
    for language in intents.LANGUAGES:
        lists = intents._package(language)["lists"]
        gaps = {name for name, of in lists.items() if of == {"wildcard": True}}
        assert gaps <= set(ours[language])
        assert len(ours[language]["area"]) == calls.N_ROOMS


# --- calls ---------------------------------------------------------------------------
@pytest.mark.parametrize("test", [True, False])
def test_a_call_is_a_room_requests_and_a_question(test):
    found = intents.help_desk("en")
    drawn = calls.draw_calls(found, 40, 61, generator(), test=test)
    part = found.unseen if test else found.known
    whole = {tuple(row[real].tolist()): int(a) for row, real, a in
             zip(part.ids, part.real, part.answers, strict=True)}  # fmt: skip
    assert (drawn.ids[:, 0] == intents.DESK).all()
    assert (drawn.ids[:, -1] == intents.WHICH_ROOM).all()
    assert (drawn.answers[:, -1] == -100).all()
    assert set(drawn.rooms.tolist()) == set(range(8))
    for ids, answers, room in zip(drawn.ids, drawn.answers, drawn.rooms, strict=True):
        start = int((answers >= 0).int().argmax())
        assert tuple(ids[1:start].tolist()) in found.openings[int(room)]
        # The rest can be cut into requests with the answers that stand there.
        rest, wanted = ids[start:-1].tolist(), answers[start:-1].tolist()
        ends = {0}
        for at in range(len(rest)):
            if at in ends:
                for said, answer in whole.items():
                    left = len(rest) - at
                    if list(said[:left]) == rest[at : at + len(said)] and set(
                        wanted[at : at + len(said)]
                    ) == {answer}:
                        ends.add(min(len(rest), at + len(said)))
        assert len(rest) in ends


def test_a_call_too_short_is_refused():
    with pytest.raises(ShapeError, match="n=15 tokens are too few for a call"):
        calls.draw_calls(intents.help_desk("en"), 1, 15, generator(), test=True)


# --- the ways ------------------------------------------------------------------------
def drawn(n: int, d: int = 5, seed: int = 0):
    return torch.randn(3, 2, 3, n, d, generator=generator(seed)).unbind(0)


REAL = torch.arange(8) < torch.tensor([[8], [5]])[:, None, :]  # (2, 1, 8)


@pytest.mark.parametrize(
    "attend",
    [desk.full, desk.Window(2), desk.Window(1, n_global=1), ways.pooled, ways.linear],
)
def test_fillers_change_nothing(attend):
    q, k, v = drawn(8)
    out = attend(q, k, v, REAL)
    k, v = k.clone(), v.clone()
    k[1, :, 5:], v[1, :, 5:] = 7.0, -9.0
    real = REAL[..., None].expand(out.shape)
    assert torch.allclose(attend(q, k, v, REAL)[real], out[real])
    whole = torch.ones(2, 1, 8, dtype=torch.bool)
    assert torch.allclose(attend(q, k, v, whole), attend(q, k, v), atol=1e-12)


def test_low_rank_leaves_fillers_out_and_takes_shorter_texts():
    attend, (q, k, v) = ways.LowRank(3, 10, generator=generator()), drawn(8)
    cut = attend(q[1, :, :5], k[1, :, :5], v[1, :, :5])
    assert torch.allclose(attend(q, k, v, REAL)[1, :, :5], cut)
    numpy = (x[0, 0].numpy() for x in (q, k, v))
    right = lowrank.low_rank(*numpy, attend.E.detach()[:, :8].numpy()).out
    np.testing.assert_allclose(attend(q, k, v)[0, 0].detach(), right, atol=1e-12)


def test_pooling_means_over_what_is_real():
    q, k, v = (x[1, 0] for x in drawn(8))
    found = ways.pooled(q[None, :5], k[None], v[None], REAL[1])[0]
    short = [torch.stack([x[:4].mean(0), x[4]]) for x in (k, v)]
    right = scaled_dot_product(q[:5].numpy(), *(x.numpy() for x in short)).out
    np.testing.assert_allclose(found, right, atol=1e-12)


@pytest.mark.parametrize("n_global", [0, 1])
def test_a_window_looks_where_its_mask_says(n_global):
    q, k, v = drawn(11)
    near = masks.window(11, left=3, right=3)
    look = near | masks.global_tokens(11, n_global=n_global)
    found = desk.Window(3, n_global)(q, k, v)[1, 2]
    right = scaled_dot_product(*(x[1, 2].numpy() for x in (q, k, v)), look).out
    np.testing.assert_allclose(found, right, atol=1e-12)


def test_an_unknown_way_is_named():
    for ask in (lambda: desk.way("fast", 8), lambda: desk.flops("fast", 8)):
        with pytest.raises(ValueError, match="'fast' is none of 'bag', 'full'"):
            ask()


# --- the model -----------------------------------------------------------------------
def model(name: str, n: int = 32, seed: int = 0, side: int = desk.NEAR):
    found = intents.help_desk("en")
    luck = generator(seed)
    attend = desk.way(name, n, side=side, generator=luck)
    return desk.DeskModel(found, attend, generator=luck)


@pytest.mark.parametrize("name", desk.NAMES)
def test_a_request_does_not_depend_on_its_fillers(name):
    ids = intents.help_desk("en").unseen.ids[:6]
    longer = torch.cat([ids, torch.zeros(6, 4, dtype=torch.long)], 1)
    made = model(name)
    with torch.no_grad():
        assert torch.allclose(made.request(ids), made.request(longer), atol=1e-12)


@pytest.mark.parametrize("name", desk.NAMES)
def test_all_that_is_trained_gets_a_gradient(name):
    made = model(name)
    found = calls.draw_calls(intents.help_desk("en"), 2, 32, generator(), test=False)
    made.loss(found).backward()
    for key, parameter in made.named_parameters():
        if parameter.numel():
            assert parameter.grad is not None, key
            assert parameter.grad.abs().max() > 0, key


@pytest.mark.parametrize(("name", "reaches"), [("window", False), ("global", True)])
def test_the_room_reaches_the_end_through_a_global_token_alone(name, reaches):
    found = calls.draw_calls(intents.help_desk("en"), 1, 64, generator(), test=True)
    made, other = model(name, side=3), found.ids.clone()
    other[0, 2] = 9  # a word of the opening
    with torch.no_grad():
        moved = (made.call(other)[1] - made.call(found.ids)[1]).abs().max()
    assert (moved > 1e-9) == reaches


def test_without_the_first_head_nothing_knows_a_place():
    ids = intents.help_desk("en").known.ids[:1, :6]
    turned = torch.tensor([4, 0, 5, 2, 1, 3])
    made = model("full")
    with torch.no_grad():
        moved = made(ids[:, turned]) - made(ids)[:, turned]
        assert moved.abs().max() > 1e-3
        made.W_o[:, : desk.D_MODEL // 2] = 0  # what the first head has found
        moved = made(ids[:, turned]) - made(ids)[:, turned]
        assert moved.abs().max() < 1e-12


@pytest.mark.parametrize(("away", "seen"), [(0, True), (3, True), (4, False)])
def test_a_bag_in_a_call_holds_three_on_each_side(away, seen):
    ids = torch.zeros(1, 20, dtype=torch.long)
    made, other = model("bag"), ids.clone()
    other[0, 10 + away] = 9
    with torch.no_grad():
        assert (made(other)[0, 10] != made(ids)[0, 10]).any() == seen


def test_there_may_be_fewer_global_tokens():
    assert desk.way("global", 20, side=2, n_global=1) == desk.Window(2, 1)
    assert desk.way("global", 5) == desk.Window(8, 5)


def test_the_flops_are_those_that_torch_counts():
    n = 64
    ids = torch.zeros(1, n, dtype=torch.long)
    for name in ("bag", "full", "pooled", "low rank", "linear"):
        made = model(name, n)
        written_out = sdpa_kernel(SDPBackend.MATH)  # fused ones are not counted
        with FlopCounterMode(display=False) as counter, torch.no_grad(), written_out:
            made.call(ids)
        counted = counter.get_total_flops()
        # Linear's q with the sum of all keys is a product, too.
        assert counted == pytest.approx(desk.flops(name, n), rel=0.005), name


@pytest.mark.parametrize(("name", "n_global"), [("window", 0), ("global", 8)])
@pytest.mark.parametrize("n", [4, 12, 60])
def test_the_pairs_of_windows_are_those_of_their_masks(name, n_global, n):
    near = masks.window(n, left=min(n, 8), right=min(n, 8))
    look = near | masks.global_tokens(n, n_global=min(n, n_global))
    rest = desk.flops("full", n) - 2 * 4 * n * n * desk.D_MODEL
    assert desk.flops(name, n) - rest == 2 * 4 * desk.D_MODEL * look.sum()


def test_a_short_training_learns_something():
    from attnlib.nn.train import train

    found, luck = intents.help_desk("en"), generator()
    made = model("bag")

    def loss(step):
        ids, answers = found.known.batch(32, luck)
        return torch.nn.functional.cross_entropy(made.request(ids), answers)

    before = made.right_in_requests(found.unseen)
    train(made, loss, 100, lr=0.03)
    assert made.right_in_requests(found.unseen) > before + 0.3
