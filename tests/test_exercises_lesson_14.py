"""Lesson 14: answers as people write them, right and wrong, and what they are told."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from attnlib.clinic.probes_shaping import losses_of
from attnlib.exercises import get, judge, names
from attnlib.nn import distill
from attnlib.nn.gates import HeadGate

LESSON = ("prune_to_budget", "causal_gate", "distil_attention")
INF = torch.inf


def test_the_lesson_has_these_exercises_and_their_minutes_fit_into_its_text():
    assert set(names(14)) == set(LESSON)
    assert sum(get(name).minutes for name in LESSON) == 26


def test_the_solutions_are_what_the_library_does():
    draw = torch.Generator().manual_seed(0)
    x, mixed = torch.randn(2, 5, 4, generator=draw), torch.randn(2, 3, 5, 6)
    gate = HeadGate(4, 3)
    with torch.no_grad():
        gate.W_g.weight.copy_(torch.randn(3, 4, generator=draw))
        mine = get("causal_gate").solution(x, mixed, gate.W_g.weight.T, gate.W_g.bias)
        torch.testing.assert_close(mine, gate(x, mixed))
    scores = torch.randn(2, 3, 4, 6, generator=draw)
    scores[1, ..., 4:] = -INF
    weights = torch.softmax(2 * scores, -1)
    counted = torch.tensor([[True] * 4, [True, False, True, False]])
    theirs = distill.attention_divergence(scores, weights, counted[:, None])
    mine = get("distil_attention").solution(scores, weights, counted)
    torch.testing.assert_close(mine, theirs)


def told(name, answer, key, seed=0):
    verdict = judge(name, answer, seed)
    assert verdict.status not in ("passed", "law"), verdict.text
    assert {m.key for m in verdict.mistakes} == {key}, verdict.text


# --- heads taken away --------------------------------------------------------------
def by_sets(loss_of, n_heads, budget):
    kept = set(range(n_heads))
    while len(kept) > budget:
        kept.remove(min(kept, key=lambda h: loss_of(sorted(kept - {h}))))
    return sorted(kept)


def by_combinations(loss_of, n_heads, budget):
    """All sets with one head less are one round."""
    kept = tuple(range(n_heads))
    for n in range(n_heads - 1, budget - 1, -1):
        kept = min(itertools.combinations(kept, n), key=loss_of)
    return kept


def by_itself(loss_of, n_heads, budget):
    def go(kept):
        if len(kept) == budget:
            return kept
        tried = [np.delete(kept, i) for i in range(len(kept))]
        return go(tried[int(np.argmin([loss_of(some) for some in tried]))])

    return go(np.arange(n_heads))


def by_truth(loss_of, n_heads, budget):
    on = np.ones(n_heads, dtype=bool)
    for _ in range(n_heads - budget):
        losses = np.full(n_heads, np.inf)
        for head in np.flatnonzero(on):
            on[head] = False
            losses[head] = loss_of(np.flatnonzero(on))
            on[head] = True
        on[losses.argmin()] = False
    return np.flatnonzero(on)


def by_one_list(loss_of, n_heads, budget):
    """One list, changed and put back."""
    kept = list(range(n_heads))
    while len(kept) > budget:
        found = {}
        for head in kept[:]:
            kept.remove(head)
            found[head] = loss_of(kept)
            kept.append(head)
        kept.remove(min(found, key=found.get))
    return sorted(kept)


def by_tensors(loss_of, n_heads, budget):
    kept = torch.arange(n_heads)
    for _ in range(n_heads - budget):
        losses = torch.tensor([loss_of(kept[kept != head]) for head in kept])
        kept = kept[torch.arange(len(kept)) != losses.argmin()]
    return kept


def by_floats(loss_of, n_heads, budget):
    return by_sets(lambda some: loss_of(np.array(some, float)), n_heads, budget)


def by_changes(loss_of, n_heads, budget):
    """The change of the loss, with its sign, ranks as the loss does."""
    kept = list(range(n_heads))
    while len(kept) > budget:
        changes = {h: loss_of(without(kept, h)) - loss_of(kept) for h in kept}
        kept = without(kept, min(changes, key=changes.get))
    return tuple(kept)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "answer",
    [
        by_sets,
        by_combinations,
        by_itself,
        by_truth,
        by_one_list,
        by_tensors,
        by_floats,
        by_changes,
    ],
)
def test_another_right_way_to_prune_passes(answer, seed):
    verdict = judge("prune_to_budget", answer, seed)
    assert verdict.passed, verdict.text


def without(kept, gone):
    return [head for head in kept if head != gone]


def ranked_once(loss_of, n_heads, budget):
    every = list(range(n_heads))
    missed = [loss_of(without(every, h)) for h in every]
    return sorted(np.argsort(missed)[n_heads - budget :].tolist())


def most_missed(loss_of, n_heads, budget):
    kept = list(range(n_heads))
    while len(kept) > budget:
        kept.remove(max(kept, key=lambda h: loss_of(without(kept, h))))
    return kept


def alone(loss_of, n_heads, budget):
    return sorted(sorted(range(n_heads), key=lambda h: loss_of([h]))[:budget])


def head_handed_over(loss_of, n_heads, budget):
    kept = list(range(n_heads))
    while len(kept) > budget:
        kept.remove(min(kept, key=lambda h: loss_of([h])))
    return kept


def added(loss_of, n_heads, budget):
    kept = []
    while len(kept) < budget:
        left = [h for h in range(n_heads) if h not in kept]
        kept.append(min(left, key=lambda h: loss_of([*kept, h])))
    return sorted(kept)


def best_set(loss_of, n_heads, budget):
    return list(min(itertools.combinations(range(n_heads), budget), key=loss_of))


def one_short(loss_of, n_heads, budget):
    return by_sets(loss_of, n_heads, min(budget + 1, n_heads))


def one_more(loss_of, n_heads, budget):
    return by_sets(loss_of, n_heads, budget - 1)


def budget_removed(loss_of, n_heads, budget):
    return by_sets(loss_of, n_heads, n_heads - budget)


def gone_returned(loss_of, n_heads, budget):
    kept = by_sets(loss_of, n_heads, budget)
    return [h for h in range(n_heads) if h not in kept]


def order_returned(loss_of, n_heads, budget):
    kept, order = list(range(n_heads)), []
    while len(kept) > budget:
        order.append(min(kept, key=lambda h: loss_of(without(kept, h))))
        kept.remove(order[-1])
    return order


def with_measure(measure):
    """Round after round; measure(loss_of, kept, gone, head) is what has to be low."""

    def answer(loss_of, n_heads, budget):
        kept, gone = list(range(n_heads)), []
        while len(kept) > budget:
            gone.append(min(kept, key=lambda h: measure(loss_of, kept, gone, h)))
            kept.remove(gone[-1])
        return kept

    return answer


def every_head(kept, gone):
    return sorted([*kept, *gone])


def size_of_change(loss_of, kept, gone, head):
    return abs(loss_of(without(kept, head)) - loss_of(kept))


def size_of_change_from_all(loss_of, kept, gone, head):
    return abs(loss_of(without(kept, head)) - loss_of(every_head(kept, gone)))


def off_handed_over(loss_of, kept, gone, head):
    return loss_of([*gone, head])


def nothing_left_out(loss_of, n_heads, budget):
    kept = list(range(n_heads))
    while len(kept) > budget:
        losses = [loss_of(kept[:i] + kept[i:]) for i in range(len(kept))]
        kept.pop(losses.index(min(losses)))
    return kept


def places_left_out(loss_of, n_heads, budget):
    kept = list(range(n_heads))
    while len(kept) > budget:
        losses = [loss_of(without(kept, i)) for i in range(len(kept))]
        kept.pop(losses.index(min(losses)))
    return kept


PRUNED = [
    (ranked_once, "prune_ranked_once"),
    (most_missed, "prune_most_missed"),
    (alone, "prune_ranked_alone"),
    (head_handed_over, "prune_best_alone_removed"),
    (added, "prune_built_up"),
    (best_set, "prune_best_set"),
    (one_short, "prune_one_too_few"),
    (one_more, "prune_one_too_many"),
    (budget_removed, "prune_budget_removed"),
    (gone_returned, "prune_removed_returned"),
    (order_returned, "prune_order_returned"),
    (lambda f, n, b: list(range(b)), "prune_last_heads"),
    (nothing_left_out, "prune_first_heads"),
    (with_measure(size_of_change), "prune_size_of_change"),
    (with_measure(size_of_change_from_all), "prune_size_of_change_from_all"),
    (with_measure(off_handed_over), "prune_off_handed_over"),
    (places_left_out, "prune_places_left_out"),
    (lambda f, n, b: by_sets(f, n, b)[::-1], "prune_backwards"),
    (lambda f, n, b: [h + 1 for h in by_sets(f, n, b)], "prune_counted_from_one"),
]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("answer", "key"), PRUNED)
def test_a_wrong_way_to_prune_is_named(answer, key, seed):
    told("prune_to_budget", answer, key, seed)


def by_worth(loss_of, n_heads, budget):
    kept = by_sets(loss_of, n_heads, budget)
    return sorted(kept, key=lambda h: -loss_of(without(kept, h)))


def head_0_stays(loss_of, n_heads, budget):
    kept = list(range(n_heads))
    while len(kept) > budget:
        kept.remove(min(kept[1:], key=lambda h: loss_of(without(kept, h))))
    return kept


def losses_returned(loss_of, n_heads, budget):
    return [loss_of([head]) for head in by_sets(loss_of, n_heads, budget)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (by_worth, "stand in rising order"),
        (head_0_stays, "the loss is lowest without head 0"),
        (losses_returned, "heads that are kept are returned"),
    ],
)
def test_heads_of_another_kind_break_a_law(answer, words):
    verdict = judge("prune_to_budget", answer)
    assert verdict.status == "law", verdict.text
    assert words in verdict.text


@pytest.mark.parametrize("high", [1.0, 10.0, 999.0])
def test_a_lowest_loss_may_be_larger_than_any_first_guess(high):
    def answer(loss_of, n_heads, budget):
        kept = list(range(n_heads))
        while len(kept) > budget:
            lowest, gone = high, kept[-1]
            for head in kept:
                loss = loss_of(without(kept, head))
                if loss < lowest:
                    lowest, gone = loss, head
            kept.remove(gone)
        return kept

    assert not judge("prune_to_budget", answer).passed


def lowest_of_all_rounds(loss_of, n_heads, budget):
    kept, lowest, gone = list(range(n_heads)), np.inf, None
    while len(kept) > budget:
        for head in kept:
            loss = loss_of(without(kept, head))
            if loss < lowest:
                lowest, gone = loss, head
        kept.remove(gone)
    return kept


def popped(loss_of, n_heads, budget):
    kept = list(range(n_heads))
    while len(kept) > budget:
        kept.pop(min(kept, key=lambda h: loss_of(without(kept, h))))
    return kept


def list_replaced(loss_of, n_heads, budget):
    kept = list(range(n_heads))
    while len(kept) > budget:
        losses = [loss_of(without(kept, h)) for h in kept]
        kept = kept.pop(losses.index(min(losses)))
    return kept


def list_compared(loss_of, n_heads, budget):
    kept = list(range(n_heads))
    while kept > budget:
        kept.pop()
    return kept


def range_changed(loss_of, n_heads, budget):
    kept = range(n_heads)
    kept.pop()
    return kept


def handed(change):
    return lambda f, n, b: by_sets(lambda some: f(change(some, n)), n, b)


RAISED = [
    (lowest_of_all_rounds, "Has it gone already"),
    (popped, "take a place in the list"),
    (list_replaced, "without `left =` in front"),
    (list_compared, "len(...) says how many"),
    (range_changed, "list(range(n)) can"),
    (lambda f, n, b: by_sets(lambda some: f(*some), n, b), "one list of heads"),
    (lambda f, n, b: [h for h in range(n) if f(h) < 1][:b], "it got 0 (case"),
    (handed(lambda some, n: [h in some for h in range(n)]), "it got [False, True"),
    (handed(lambda some, n: [str(h) for h in some]), "of their numbers"),
    (handed(lambda some, n: [h + 1 for h in some]), "not all heads from 0 to 3"),
    (handed(lambda some, n: [*some, some[0]]), "holds a head twice"),
]


@pytest.mark.parametrize(("answer", "words"), RAISED)
def test_a_list_or_a_loss_asked_wrongly_says_how(answer, words):
    verdict = judge("prune_to_budget", answer)
    assert verdict.status == "raised"
    assert words in verdict.text


def place_for_head(loss_of, n_heads, budget):
    kept = list(range(n_heads))
    while len(kept) > budget:
        losses = [loss_of(without(kept, h)) for h in kept]
        kept.remove(losses.index(min(losses)))
    return kept


def a_set(loss_of, n_heads, budget):
    return set(by_sets(loss_of, n_heads, budget))


def nothing(loss_of, n_heads, budget):
    by_sets(loss_of, n_heads, budget)


def without_end(loss_of, n_heads, budget):
    return by_sets(loss_of, n_heads, budget - 2)


@pytest.mark.parametrize(
    "answer",
    [
        place_for_head,
        a_set,
        nothing,
        without_end,
        lambda f, n, b: f(by_sets(f, n, b)),
        lambda f, n, b: [h in by_sets(f, n, b) for h in range(n)],
        lambda f, n, b: by_sets(f, n + 1, b),
        lambda f, n, b: f(range(n + 1)),
        lambda f, n, b: f([0, 0]),
    ],
)
def test_other_slips_are_refused(answer):
    assert not judge("prune_to_budget", answer).passed


def test_losses_are_those_of_jobs_that_nobody_does():
    loss_of = losses_of(np.random.default_rng(0), 3, [((0, 2), 4.0), ((1,), 1.0)], 0.0)
    assert [loss_of(s) for s in ([0], [2, 1], (1,), [])] == [1, 0, 4, 5]
    assert loss_of(np.array([0, 2])) == 1
    for wrong in ([3], [-1], [0.5]):
        with pytest.raises(ValueError, match="not all heads from 0 to 2"):
            loss_of(wrong)
    with pytest.raises(ValueError, match="holds a head twice"):
        loss_of([0, 0])
    for wrong in (0, "01", [True, False], np.array([True, False]), [[0], [1]]):
        with pytest.raises(TypeError, match="wants one list of heads"):
            loss_of(wrong)


# --- gates ----------------------------------------------------------------------------
def gate_by_einsum(x, mixed, W_g, b_g):
    gates = torch.sigmoid(torch.einsum("btd,dh->bht", x, W_g) + b_g[:, None])
    return torch.einsum("bht,bhtv->bhtv", gates, mixed)


def gate_by_linear(x, mixed, W_g, b_g):
    gates = F.linear(x, W_g.T, b_g).sigmoid()
    return gates.movedim(-1, 1).unsqueeze(-1) * mixed


def gate_by_hand(x, mixed, W_g, b_g):
    out = torch.empty_like(mixed)
    for t in range(x.shape[1]):
        for h in range(mixed.shape[1]):
            z = (x[:, t] * W_g[:, h]).sum(-1) + b_g[h]
            out[:, h, t] = mixed[:, h, t] / (1 + (-z).exp())[:, None]
    return out


def gate_of_mixed_turned(x, mixed, W_g, b_g):
    by_token = mixed.transpose(1, 2)
    return (by_token * torch.sigmoid(x @ W_g + b_g)[..., None]).transpose(1, 2)


def gate_by_module(x, mixed, W_g, b_g):
    gate = HeadGate(*W_g.shape).to(x)
    gate.W_g.weight.data, gate.W_g.bias.data = W_g.T, b_g
    return gate(x, mixed)


def gate_by_tanh(x, mixed, W_g, b_g):
    return mixed * (1 + torch.tanh((x @ W_g + b_g) / 2)).mT[..., None] / 2


def gate_by_numpy(x, mixed, W_g, b_g):
    gates = 1 / (1 + np.exp(-(x.numpy() @ W_g.numpy() + b_g.numpy())))
    return mixed.numpy() * np.swapaxes(gates, 1, 2)[..., None]


def gate_in_single(x, mixed, W_g, b_g):
    return gate_by_einsum(*(a.float() for a in (x, mixed, W_g, b_g)))


def gate_text_by_text(x, mixed, W_g, b_g):
    gates = [torch.sigmoid(one @ W_g + b_g).T for one in x]
    return [m * g[..., None] for m, g in zip(mixed, gates, strict=True)]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "answer",
    [
        gate_by_einsum,
        gate_by_linear,
        gate_by_hand,
        gate_of_mixed_turned,
        gate_by_module,
        gate_by_tanh,
        gate_by_numpy,
        gate_in_single,
        gate_text_by_text,
    ],
)
def test_another_right_gate_passes(answer, seed):
    verdict = judge("causal_gate", answer, seed)
    assert verdict.passed, verdict.text


def gate(
    asks=lambda x: x,
    score=lambda x, W, b: x @ W + b,
    squash=torch.sigmoid,
    turn=lambda g, m: g.transpose(1, 2),
    apply=lambda m, g: m * g,
):
    """The solution with one part replaced."""

    def answer(x, mixed, W_g, b_g):
        gates = squash(score(asks(x), W_g, b_g))
        return apply(mixed, turn(gates, mixed)[..., None])

    return answer


def mean_kept(x):
    return x.mean(1, keepdim=True).expand_as(x)


def mean_past(x):
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None]


GATES = [
    (gate(mean_kept), "gate_of_text"),
    (gate(lambda x: x.mean(1, keepdim=True)), "gate_of_text"),
    (gate(mean_past), "gate_of_past"),
    (gate(lambda x: x[:, -1:]), "gate_of_last"),
    (gate(lambda x: x[:, :1]), "gate_of_first"),
    (gate(lambda x: x.roll(-1, 1)), "gate_of_next"),
    (gate(lambda x: x.roll(1, 1)), "gate_of_previous"),
    (gate(lambda x: x.flip(1)), "gate_of_reversed"),
    (gate(lambda x: x.mean(0, keepdim=True)), "gate_of_batch"),
    (gate(lambda x: x[:1]), "gate_of_first_text"),
    (gate(score=lambda x, W, b: x @ W), "gate_bias_missing"),
    (gate(score=lambda x, W, b: x @ W - b), "gate_bias_subtracted"),
    (gate(score=lambda x, W, b: x @ W / len(W) ** 0.5 + b), "gate_scaled"),
    (gate(squash=lambda z: z), "gate_open_ended"),
    (gate(squash=torch.tanh), "gate_tanh"),
    (gate(squash=torch.relu), "gate_relu"),
    (gate(squash=F.silu), "gate_silu"),
    (gate(squash=torch.exp), "gate_exp"),
    (gate(squash=lambda z: z.sigmoid() ** 2), "gate_squared"),
    (gate(squash=lambda z: F.normalize(z.sigmoid(), 1, -1)), "gate_normed"),
    (
        gate(squash=lambda z: z.sigmoid() / z.sigmoid().mean(-1, keepdim=True)),
        "gate_mean_of_one",
    ),
    (gate(squash=lambda z: z.sigmoid()[..., :1].expand_as(z)), "gate_of_head_0"),
    (gate(score=lambda x, W, b: (x @ W + b) / len(W) ** 0.5), "gate_bias_scaled"),
    (gate(squash=lambda z: (z > 0).to(z)), "gate_hard"),
    (gate(squash=lambda z: z.softmax(-1)), "gate_softmax_heads"),
    (gate(squash=lambda z: z.softmax(1)), "gate_softmax_tokens"),
    (gate(squash=lambda z: z.sigmoid().sigmoid()), "gate_twice"),
    (gate(squash=lambda z: z.sigmoid().mean(1, keepdim=True)), "gate_mean_after"),
    (
        gate(squash=lambda z: z.sigmoid().mean(2, keepdim=True).expand_as(z)),
        "gate_one_for_all",
    ),
    (
        gate(turn=lambda g, m: g.reshape(len(g), m.shape[1], -1)),
        "gate_reshaped",
    ),
    (gate(turn=lambda g, m: g.transpose(1, 2).flip(1)), "gate_heads_reversed"),
    (gate(apply=lambda m, g: g.expand_as(m)), "gate_alone"),
    (gate(apply=lambda m, g: m + g), "gate_added"),
    (gate(apply=lambda m, g: m + m * g), "gate_residual"),
    (gate(apply=lambda m, g: m * (1 - g)), "gate_closed"),
    (gate(apply=lambda m, g: 2 * m * g), "gate_doubled"),
    (gate(apply=lambda m, g: m / g), "gate_divides"),
]


@pytest.mark.parametrize(("answer", "key"), GATES)
def test_a_wrong_gate_is_named(answer, key):
    told("causal_gate", answer, key)


def article_gate(x, mixed, W_g, b_g):
    weights = torch.sigmoid(x.mean(1) @ W_g + b_g)
    return (mixed * weights[..., None, None]).sum(dim=1)


def article_gate_kept(x, mixed, W_g, b_g):
    return mixed * torch.sigmoid(x.mean(1) @ W_g + b_g)[..., None, None]


@pytest.mark.parametrize(
    "answer",
    [
        article_gate,
        article_gate_kept,
        lambda x, m, W, b: torch.sigmoid(x @ W + b),
        lambda x, m, W, b: m * torch.sigmoid(x @ W + b),
        lambda x, m, W, b: m * torch.sigmoid(x @ W + b)[..., None],
        lambda x, m, W, b: gate_by_einsum(x, m, W, b).sum(1),
        lambda x, m, W, b: gate_by_einsum(x, m, W, b).transpose(1, 2).flatten(2),
        lambda x, m, W, b: m,
        lambda x, m, W, b: m.mul_(0.5),
    ],
)
def test_other_wrong_gates_are_refused(answer):
    assert not judge("causal_gate", answer).passed


def test_a_gate_that_peeks_in_a_way_of_its_own_breaks_a_law():
    def peeks(x, mixed, W_g, b_g):
        return gate_by_einsum(x + 0.3 * x.amax(1, keepdim=True), mixed, W_g, b_g)

    verdict = judge("causal_gate", peeks)
    assert verdict.status == "law"
    assert "that token alone" in verdict.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x, m, W, b: 0.9 * m, "follow that token of x"),
        (lambda x, m, W, b: m.clone(), "follow that token of x"),
        (lambda x, m, W, b: m * m.mean(-1, keepdim=True).sigmoid(), "follow that"),
        (gate(squash=F.softplus), "a number from 0 to 1"),
        (gate(lambda x: x.sigmoid(), squash=lambda z: z), "a number from 0 to 1"),
    ],
)
def test_a_gate_of_another_kind_breaks_a_law(answer, words):
    verdict = judge("causal_gate", answer)
    assert verdict.status == "law", verdict.text
    assert words in verdict.text


def test_a_product_the_wrong_way_round_says_which_shapes_clash():
    verdict = judge("causal_gate", lambda x, m, W, b: m * torch.sigmoid(W @ x + b))
    assert "Here they are `W`, (4, 3), and `x`, (1, 2, 4)." in verdict.text


# --- copied attention --------------------------------------------------------------
def by_kl_div(scores, teacher_weights, counted):
    log_s = torch.log_softmax(scores, -1).clamp(min=-1e9)
    each = F.kl_div(log_s, teacher_weights, reduction="none").sum(-1)
    rows = counted[:, None].expand_as(each)
    return each[rows].mean()


def by_loops(scores, teacher_weights, counted):
    found = []
    for b, h, i in itertools.product(*map(range, scores.shape[:3])):
        if counted[b, i]:
            log_s, p = torch.log_softmax(scores[b, h, i], -1), teacher_weights[b, h, i]
            yes = p > 0
            found.append((p[yes] * (p[yes].log() - log_s[yes])).sum())
    return torch.stack(found).mean()


def by_nansum(scores, teacher_weights, counted):
    log_p, log_s = teacher_weights.log(), torch.log_softmax(scores, -1)
    rows = torch.nansum(teacher_weights * (log_p - log_s), -1)
    return (rows * counted[:, None]).sum() / (counted.sum() * rows.shape[1])


def by_masks(scores, teacher_weights, counted):
    log_s = scores - scores.logsumexp(-1, keepdim=True)
    log_s = log_s.masked_fill(scores.isinf(), 0)
    log_p = teacher_weights.clamp(min=1e-30).log()
    rows = (teacher_weights * (log_p - log_s)).sum(-1).mean(1)
    return (rows * counted).sum() / counted.sum()


def by_distributions(scores, teacher_weights, counted):
    of = torch.distributions.Categorical
    rows = torch.distributions.kl_divergence(
        of(probs=teacher_weights), of(logits=scores.clamp(min=-1e9))
    )
    return rows.transpose(1, 2)[counted].mean()


def as_a_float(scores, teacher_weights, counted):
    return by_masks(scores, teacher_weights, counted).item()


def by_batchmean(scores, teacher_weights, counted):
    """batchmean, of rows that lie in one axis."""
    rows = [a.transpose(1, 2)[counted].flatten(0, 1) for a in (scores, teacher_weights)]
    log_s = torch.log_softmax(rows[0], -1).masked_fill(rows[1] == 0, 0)
    return F.kl_div(log_s, rows[1], reduction="batchmean")


def by_entropies(scores, teacher_weights, counted):
    p = teacher_weights
    log_s = torch.log_softmax(scores.clamp(min=-1e9), -1)
    rows = -(p * log_s).sum(-1) - torch.special.entr(p).sum(-1)
    return torch.masked_select(rows, counted[:, None]).mean()


def by_library(scores, teacher_weights, counted):
    return distill.attention_divergence(scores, teacher_weights, counted[:, None])


def in_single(scores, teacher_weights, counted):
    return by_masks(scores.float(), teacher_weights.float(), counted)


def with_a_graph(scores, teacher_weights, counted):
    return by_masks(scores.clone().requires_grad_(), teacher_weights, counted)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "answer",
    [
        by_kl_div,
        by_loops,
        by_nansum,
        by_masks,
        as_a_float,
        by_batchmean,
        by_entropies,
        by_library,
        in_single,
        with_a_graph,
    ],
)
def test_another_right_divergence_passes(answer, seed):
    verdict = judge("distil_attention", answer, seed)
    assert verdict.passed, verdict.text


def article(scores, teacher_weights, counted, T=2.0):
    student_attn = torch.softmax(scores, -1)
    return F.kl_div(
        F.log_softmax(student_attn / T, dim=-1),
        F.softmax(teacher_weights / T, dim=-1),
        reduction="batchmean",
    ) * (T**2)


def article_of(student, teacher, T=2.0):
    """Its terms, for whatever is handed to it."""
    log_s = F.log_softmax(student / T, dim=-1)
    soft = F.softmax(teacher / T, dim=-1)
    return T**2 * F.kl_div(log_s, soft, reduction="none")


def distil(
    student=lambda s: torch.log_softmax(s, -1),
    teacher=lambda p: p,
    terms=lambda p, log_s: torch.xlogy(p, p) - p * log_s,
    fill=True,
    average=lambda rows, counted: rows.transpose(1, 2)[counted].mean(),
):
    """The solution with one part replaced."""

    def answer(scores, teacher_weights, counted):
        log_s = student(scores)
        if fill:
            log_s = torch.where(log_s == -INF, 0.0, log_s)
        rows = terms(teacher(teacher_weights), log_s).sum(-1)
        return average(rows, counted)

    return answer


def zeros_counted(rows, counted):
    return (rows * counted[:, None]).mean()


def kl_div(reduction, log_s=lambda s: torch.log_softmax(s, -1).clamp(min=-1e9)):
    return lambda s, p, c: F.kl_div(log_s(s), p, reduction=reduction)


def bracket(front, log_of=torch.log_softmax):
    """front(p, s) (ln p - ln s), with logarithms as they come."""

    def answer(scores, teacher_weights, counted):
        apart = torch.log(teacher_weights) - log_of(scores, -1)
        rows = (front(teacher_weights, torch.softmax(scores, -1)) * apart).sum(-1)
        return rows.transpose(1, 2)[counted].mean()

    return answer


def ratios(scores, teacher_weights, counted):
    """ln of p / s, where p is not 0."""
    s, p = torch.softmax(scores, -1), teacher_weights
    rows = torch.where(p > 0, p * (p / s).log(), 0.0).sum(-1)
    return rows.transpose(1, 2)[counted].mean()


def late(rows, counted):
    return rows.nan_to_num().transpose(1, 2)[counted].mean()


def softened(scores, teacher_weights, counted):
    return by_kl_div(scores / 2, (teacher_weights.log() / 2).softmax(-1), counted)


def with_entropy(p, log_s):
    return p * p.log() - p * log_s


COPIES = [
    (kl_div("batchmean"), "looks_kl_div_batchmean"),
    (kl_div("mean"), "looks_kl_div_mean"),
    (kl_div("sum"), "looks_kl_div_sum"),
    (distil(terms=with_entropy), "looks_nan_zero_weight"),
    (distil(terms=with_entropy, average=late), "looks_nan_rows_zero"),
    (distil(fill=False, average=late), "looks_hidden_rows_zero"),
    (softened, "looks_softened"),
    (lambda s, p, c: 4 * by_kl_div(s, p, c), "looks_times_four"),
    (bracket(lambda p, s: -s), "looks_exchanged_infinite"),
    (bracket(lambda p, s: s), "looks_student_in_front"),
    (distil(terms=lambda p, s: torch.xlogy(p, p) - s), "looks_p_once"),
    (
        distil(terms=lambda p, s: torch.where(p > 0, p.log() - s, 0.0)),
        "looks_p_missing",
    ),
    (
        distil(average=lambda r, c: r.reshape(len(r), r.shape[2], -1)[c].mean()),
        "looks_rows_reshaped",
    ),
    (article, "looks_article"),
    (lambda s, p, c: article_of(s, p).sum(-1).sum() / len(s), "looks_article_scores"),
    (
        lambda s, p, c: article_of(s.softmax(-1), p).sum(-1).transpose(1, 2)[c].mean(),
        "looks_article_rows",
    ),
    (distil(lambda s: torch.log_softmax(s.softmax(-1), -1)), "looks_softmax_twice"),
    (distil(lambda s: s.softmax(-1)), "looks_no_log"),
    (distil(lambda s: s.softmax(-1).log()), "looks_zero_costs_nothing"),
    (ratios, "looks_log_of_zero"),
    (by_distributions, "looks_log_of_zero"),  # torch's own is infinite there, too
    (distil(lambda s: s), "looks_scores"),
    (
        distil(lambda s: torch.log_softmax(s.masked_fill(s == -INF, 0), -1)),
        "looks_hidden_seen",
    ),
    (distil(lambda s: torch.log_softmax(s / 2, -1)), "looks_halved"),
    (distil(lambda s: torch.log_softmax(s, 1)), "looks_over_heads"),
    (distil(lambda s: torch.log_softmax(s, -2)), "looks_over_queries"),
    (
        distil(teacher=lambda p: F.one_hot(p.argmax(-1), p.shape[-1]).to(p)),
        "looks_hard",
    ),
    (distil(fill=False), "looks_nan_hidden"),
    (distil(terms=lambda p, s: -p * s), "looks_entropy_missing"),
    (distil(terms=lambda p, s: p * s - torch.xlogy(p, p)), "looks_sign"),
    (distil(average=lambda rows, counted: rows.mean()), "looks_fillers_counted"),
    (distil(average=zeros_counted), "looks_fillers_as_zeros"),
    (
        distil(average=lambda r, c: r.transpose(1, 2)[c].sum() / len(r)),
        "looks_batchmean",
    ),
    (distil(average=lambda r, c: r.transpose(1, 2)[c].sum()), "looks_summed"),
    (
        distil(average=lambda r, c: r.transpose(1, 2)[c].sum() / c.sum()),
        "looks_heads_summed",
    ),
    (
        distil(average=lambda r, c: r.transpose(1, 2)[~c].mean()),
        "looks_fillers_alone",
    ),
]


@pytest.mark.parametrize(("answer", "key"), COPIES)
def test_a_wrong_divergence_is_named(answer, key):
    told("distil_attention", answer, key)


TWO = [
    (
        kl_div("batchmean", lambda s: torch.log_softmax(s, -1)),
        {"looks_nan_hidden", "looks_kl_div_batchmean"},
    ),
    (
        kl_div("mean", lambda s: torch.log_softmax(s, -1)),
        {"looks_nan_hidden", "looks_kl_div_mean"},
    ),
    (
        bracket(lambda p, s: -s, lambda s, axis: s.softmax(axis).log()),
        {"looks_log_of_zero", "looks_exchanged_infinite"},
    ),
    (lambda s, p, c: 4 * softened(s, p, c), {"looks_softened", "looks_times_four"}),
    (
        lambda s, p, c: 4 * by_kl_div(s / 2, p, c),
        {"looks_halved", "looks_times_four"},
    ),
]


@pytest.mark.parametrize(("answer", "keys"), TWO)
def test_two_mistakes_in_one_divergence_are_both_named(answer, keys):
    verdict = judge("distil_attention", answer)
    assert {m.key for m in verdict.mistakes} == keys, verdict.text


def symmetric(scores, teacher_weights, counted):
    s, p = torch.softmax(scores, -1), teacher_weights
    rows = ((p - s) * (p.clamp(min=1e-9) / s.clamp(min=1e-9)).log()).sum(-1)
    return rows.transpose(1, 2)[counted].mean()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (symmetric, "costs −ln s of that key"),
        (lambda s, p, c: by_kl_div(s, p, c).sqrt(), "costs −ln s of that key"),
        (
            lambda s, p, c: (s.softmax(-1) - p).abs().sum(-1).transpose(1, 2)[c].mean(),
            "costs −ln s of that key",
        ),
        (lambda s, p, c: by_kl_div(s[:, :1], p[:, :1], c), "looked elsewhere in head"),
        (lambda s, p, c: by_kl_div(s[:1], p[:1], c[:1]), "question 0 of text 1"),
    ],
)
def test_another_loss_breaks_a_law(answer, words):
    verdict = judge("distil_attention", answer)
    assert verdict.status == "law", verdict.text
    assert words in verdict.text


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda s, p, c: 0.0, "Yours gives 0 in every case"),
        (lambda s, p, c: by_kl_div(s, p, c) / 3, "0.333 times the right result"),
        (lambda s, p, c: by_kl_div(s, p, c).half(), "It is float16"),
        (lambda s, p, c: p[c].mean(), "axes of the mask stand for the first axes"),
        (lambda s, p, c: p[c.double()].mean(), "holds True and False"),
    ],
)
def test_what_is_simply_off_is_told_so(answer, words):
    verdict = judge("distil_attention", answer)
    assert not verdict.mistakes
    assert words in verdict.text


def test_nan_at_hidden_keys_is_explained_where_nothing_has_a_name():
    def wide(scores, teacher_weights, counted):
        rows = teacher_weights * (teacher_weights - torch.log_softmax(scores, -1))
        return rows.sum(-1).transpose(1, 2)[counted].mean().exp()

    verdict = judge("distil_attention", wide)
    assert verdict.status == "nan"
    assert "0 times -inf is NaN" in verdict.text
    assert "M14" not in verdict.text  # no row is empty


def plain_kl_div(scores, teacher_weights, counted):
    return F.kl_div(torch.log_softmax(scores, -1), teacher_weights, reduction="mean")


def each_row(scores, teacher_weights, counted):
    rows = F.kl_div(torch.log_softmax(scores, -1), teacher_weights, reduction="none")
    return rows.sum(-1)


@pytest.mark.parametrize(
    "answer",
    [
        plain_kl_div,
        each_row,
        lambda s, p, c: F.mse_loss(s.softmax(-1), p),
        lambda s, p, c: F.cross_entropy(s.flatten(0, 2), p.flatten(0, 2)),
        lambda s, p, c: by_kl_div(s, p, c) / np.log(2),
        lambda s, p, c: by_kl_div(p.log().clamp(min=-1e9), s.softmax(-1), c),
        lambda s, p, c: by_kl_div(s, p, torch.ones_like(c)),
        lambda s, p, c: by_kl_div(s / 2, p, c) * 4,
        lambda s, p, c: by_kl_div(s.mean(1, keepdim=True), p.mean(1, keepdim=True), c),
        lambda s, p, c: 0.0,
    ],
)
def test_other_wrong_divergences_are_refused(answer):
    assert not judge("distil_attention", answer).passed
