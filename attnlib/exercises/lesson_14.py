# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 14: shaping heads."""

from attnlib.clinic.families.head_gate import HEAD_GATE
from attnlib.clinic.families.looks_copied import LOOKS_COPIED
from attnlib.clinic.families.pruned import PRUNED
from attnlib.clinic.probes_shaping import gate_cases, looks_cases, pruning_cases
from attnlib.clinic.tensors import torch
from attnlib.exercises import laws_shaping as laws
from attnlib.exercises.exercise import Exercise, Part


def prune_to_budget(loss_of, n_heads, budget):
    """Choose heads to keep: take one away after the other, and look anew.

    loss_of: a function; loss_of([0, 3]) is the loss with heads 0 and 3 alone
    n_heads: how many heads there are   budget: how many to keep, at least 1
    returns: the heads that are kept, a list of numbers in rising order
    In each round the head goes without which the loss is lowest.
    """
    kept = list(range(n_heads))
    while len(kept) > budget:
        losses = [loss_of([h for h in kept if h != gone]) for gone in kept]
        kept.pop(losses.index(min(losses)))
    return kept


def causal_gate(x, mixed, W_g, b_g):
    """Turn each head up or down, by a number that each token sets for itself.

    x: (batch, n, d_model), the tokens   mixed: (batch, n_heads, n, d_v)
    W_g: (d_model, n_heads)   b_g: (n_heads,)   all of them tensors
    returns: (batch, n_heads, n, d_v), what head h mixed for token t, times
        number h of sigmoid(x[t] @ W_g + b_g)
    """
    gates = torch.sigmoid(x @ W_g + b_g)  # (batch, n, n_heads)
    return mixed * gates.transpose(1, 2)[..., None]


def distil_attention(scores, teacher_weights, counted):
    """Measure how far a student looks from where its teacher looks.

    scores: (batch, n_heads, n_q, n_k), the student's, -inf where hidden
    teacher_weights: the same shape, 0 where hidden
    counted: (batch, n_q), True for a real question, False for a filler
    returns: one number, the mean over all heads and all real questions of
        KL(teacher || student), the sum over keys of p (ln p - ln s)
    All three are tensors, and each row sees a key.
    """
    log_s = torch.log_softmax(scores, dim=-1)
    log_s = torch.where(scores == -torch.inf, 0.0, log_s)
    terms = torch.xlogy(teacher_weights, teacher_weights) - teacher_weights * log_s
    rows = terms.sum(dim=-1)  # (batch, n_heads, n_q)
    return rows.transpose(1, 2)[counted].mean()


EXERCISES = (
    Exercise(
        "prune_to_budget",
        14,
        9,
        prune_to_budget,
        pruning_cases,
        (Part("kept", "n_kept"),),
        PRUNED,
        (
            "A list of all heads, and a loop that ends when as many are left as the "
            "budget says.",
            "In each round try all that are left: the loss of the list without that "
            "one. The lowest loss says who goes.",
            "[h for h in kept if h != gone] is the list without one. Make the list of "
            "losses for gone in kept; losses.index(min(losses)) is the place of the "
            "lowest, and kept.pop(place) removes it.",
        ),
        "In each of 20 models it found the best pair of all. With six heads you could "
        "try every set. With the 144 of a BERT, one after the other takes 10 439 "
        "losses, and every set 2^144, a number of 44 digits.",
        (
            laws.heads_are_returned(),
            laws.heads_in_rising_order(),
            laws.least_missed_goes_first(),
        ),
        "As many numbers as the budget says are wanted.",
    ),
    Exercise(
        "causal_gate",
        14,
        7,
        causal_gate,
        gate_cases,
        (Part("gated", "batch n_heads n d_v"),),
        HEAD_GATE,
        (
            "First the gates: one product, a bias, a sigmoid. Write down their shape.",
            "The gates are (batch, n, n_heads), and mixed is (batch, n_heads, n, d_v). "
            "Two axes have to change places, and one is missing at the end.",
            "transpose(1, 2) exchanges the two axes; [..., None] adds one of length 1. "
            "Then multiply.",
        ),
        "Each token asks for itself alone: no mean, so no future and no fillers. It "
        "can stand in any attention, and in one with a cache.",
        (
            laws.gates_are_a_tokens_own(),
            laws.gates_follow_x(),
            laws.gates_are_shares(),
        ),
        "The result has the shape of mixed.",
        tensors=True,
    ),
    Exercise(
        "distil_attention",
        14,
        10,
        distil_attention,
        looks_cases,
        (Part("loss"),),
        LOOKS_COPIED,
        (
            "Three steps: logarithms of the student; the divergence of each row, a sum "
            "over keys; the mean of those rows that count.",
            "log_softmax of the scores is −∞ where a key is hidden, and 0 · (−∞) is "
            "NaN: replace it before you multiply. p ln p is torch.xlogy(p, p), which "
            "is 0 where p is.",
            "Rows are (batch, n_heads, n_q), counted is (batch, n_q): after "
            "rows.transpose(1, 2), [counted] picks the questions, with all their "
            "heads. Then the mean.",
        ),
        "0 says that both look alike, and ln n that an even student has a one-hot "
        "teacher, whatever the batch, the heads, the length. So a factor in front of "
        "it means the same in every model.",
        (
            laws.agreeing_costs_nothing(),
            laws.fillers_say_nothing(),
            laws.each_row_counts(),
            laws.one_hot_costs_a_logarithm(),
        ),
        "One number is wanted.",
        tensors=True,
    ),
)
