# mypy: allow-untyped-defs, allow-untyped-calls
"""The exercises of lesson 15: which attention would you ship?"""

from itertools import product
from typing import NamedTuple

import numpy as np

from attnlib.clinic.families.choosing import PICK_WAY
from attnlib.clinic.families.latency import MEDIAN_MS
from attnlib.clinic.probes_desk import latency_cases, pick_cases
from attnlib.exercises.exercise import Exercise, Misconception, Part, ValueExercise
from attnlib.exercises.played import on_a_played_machine
from attnlib.results import stored


def median_ms(answer, request, clock, set_threads, n_warm, n_timed):
    """Measure how long one request takes, on one thread.

    answer: a function; answer(request) is one call
    clock: a function; clock() is the time in seconds
    set_threads: a function; set_threads(n) lets all calls from then on use n
        threads
    n_warm: how many calls come first, and do not count
    n_timed: how many calls are timed after them, each by itself; at least 1
    returns: the median of the timed calls in ms; for an even number of them
        the mean of the two in the middle
    """
    set_threads(1)
    for _ in range(n_warm):
        answer(request)
    seconds = []
    for _ in range(n_timed):
        start = clock()
        answer(request)
        seconds.append(clock() - start)
    return 1000 * np.median(seconds)


def pick_way(ms, right, budget):
    """Pick a way to attend: good, in the budget, no dearer than needed.

    ms: (n_ways,), what a call takes
    right: (n_ways, n_seeds), the share that each training finds
    budget: the ms that a call may take; what takes just as much is in it
    returns: the number of a way, from 0; -1 if none is in the budget
    Of those in the budget, the best has the highest mean over its seeds. It is
    not told apart from those in the budget whose mean lies at most one spread
    below its own; the spread is np.std over the best one's seeds. Of all these
    the fastest is picked.
    """
    fits = ms <= budget
    if not fits.any():
        return -1
    means = np.where(fits, right.mean(axis=1), -np.inf)
    best = means.argmax()
    near = means >= means[best] - right[best].std()
    return np.where(near, ms, np.inf).argmin()


class Desk(NamedTuple):
    """What a desk demands."""

    n: str  #         tokens of a call
    intents: float  # the share that must be found, in the mean over the seeds
    rooms: float  #   the same
    budget: float  #  ms, on the machine whose times are stored


DESKS = {
    "kiosk": Desk("256", 0.6, 0.0, 0.5),
    "hotel": Desk("256", 0.84, 0.8, 1.8),
    "office": Desk("1024", 0.7, 0.5, 5.0),
    "archive": Desk("4096", 0.7, 0.8, 200.0),
}
AGAINST = ("intents", "rooms", "budget", "nothing")
_FOUND = stored("help_desk")
WAYS = tuple(_FOUND["settings"]["ways"])


def mean_of(way, desk, what):
    """The mean over the seeds, rounded as the lesson prints it; None if it cannot."""
    if desk.n == "4096":
        run = _FOUND["longer"].get(way)
        return round(run[what], 2) if run else None
    runs = [run[desk.n][what] for run in _FOUND["calls"][way]]
    return round(float(np.mean(runs)), 2)


def breaks(way, desk):
    """The demands that a way does not meet at a desk."""
    if mean_of(way, desk, "intents") is None:
        return ("length",)
    broken = [
        w for w in ("intents", "rooms") if mean_of(way, desk, w) < desk._asdict()[w]
    ]
    if _FOUND["times"][way][desk.n] > desk.budget:
        broken.append("budget")
    return tuple(broken)


def best_way(desk):
    """The fastest of those that meet all demands."""
    fit = [way for way in WAYS if not breaks(way, desk)]
    return min(fit, key=lambda way: _FOUND["times"][way][desk.n])


def against_full(desk):
    """What speaks against full attention: what it breaks, or nothing but time."""
    return (*breaks("full", desk), "nothing")[0]


_RIGHT = {name: (best_way(desk), against_full(desk)) for name, desk in DESKS.items()}


def _met(name, way, demand):
    """What a way has to show for one demand of a desk."""
    desk = DESKS[name]
    if demand == "budget":
        ms = _FOUND["times"][way][desk.n]
        return (
            f"{way} takes {ms:.2f} ms for {desk.n} tokens, and {desk.budget:g} are "
            "allowed"
        )
    wanted = desk._asdict()[demand]
    if not wanted:
        return f"no {demand} are asked for"
    return (
        f"{way} finds {mean_of(way, desk, demand):.2f} of the {demand} at {desk.n} "
        f"tokens, and {wanted} are asked for"
    )


def _why_not(name, way):
    """A sentence on a way that is not the right one for a desk."""
    broken = breaks(way, DESKS[name])
    if not broken:
        return f"{name}: {way} meets all demands, but it is not the fastest that does."
    if broken[0] == "length":
        return f"{name}: {way} has numbers for 1024 places, and none for one beyond."
    return f"{name}: {_met(name, way, broken[0])}."


def _not_against(name, reason):
    """A sentence on what does not speak against full attention at a desk."""
    if reason == "nothing":
        return f"{name}: full attention breaks one of the demands. Go through them."
    return f"{name}: {_met(name, 'full', reason)}. So it does not break that."


def _pairs(name):
    """All wrong pairs for a desk; where both are wrong, the way is spoken of."""
    right_way, right_reason = _RIGHT[name]
    for way, reason in product(WAYS, AGAINST):
        if way != right_way:
            yield (way, reason), _why_not(name, way)
        elif reason != right_reason:
            yield (way, reason), _not_against(name, reason)


_WRONG = (
    Misconception(
        {name: (way, "nothing") for name, (way, _) in _RIGHT.items()},
        "The second of a pair is about full attention: what breaks if *it* stands "
        "there. What you chose breaks nothing.",
    ),
    *(
        Misconception(_RIGHT | {name: pair}, said)
        for name in DESKS
        for pair, said in _pairs(name)
    ),
)


def tidy_choices(answer):
    """Text of NumPy is text, too, and an array of two is a pair."""
    if type(answer) is not dict:
        return answer

    def word(value):
        if type(value) not in (str, np.str_):
            return value
        return str(value).casefold().replace("_", " ").replace("-", " ").strip()

    def pair(value):
        many = type(value) in (tuple, list, np.ndarray)
        return tuple(map(word, value)) if many else word(value)

    return {word(name): pair(value) for name, value in answer.items()}


EXERCISES = (
    Exercise(
        "median_ms",
        15,
        8,
        median_ms,
        latency_cases,
        (Part("ms"),),
        MEDIAN_MS,
        (
            "Three rules: one thread, warm, median. Which of them has to come first?",
            "Two loops. The first one only calls. The second looks at the clock before "
            "and after each call, and keeps the difference in a list.",
            "start = clock() inside the loop, then the call, then the list gets what "
            "clock() says now, less start. np.median of the list, and ms are wanted.",
        ),
        "The same three rules stand behind torch's benchmark.Timer. A number measured "
        "otherwise may be right by luck; nobody can tell.",
        around=on_a_played_machine,
    ),
    Exercise(
        "pick_way",
        15,
        7,
        pick_way,
        pick_cases,
        (Part("way"),),
        PICK_WAY,
        (
            "Strike out what is over the budget before you look for the best.",
            "np.where(fits, means, -np.inf) leaves the others in their places, without "
            "a chance. argmax gives the number of the best.",
            "Near are those whose mean is at least that of the best less "
            "right[best].std(). np.where once more, with np.inf for the others, and "
            "argmin.",
        ),
        "A difference smaller than what another seed would change is none to pay for. "
        "With few seeds a spread is rough: five cannot settle a close race.",
    ),
    ValueExercise(
        "choices",
        15,
        8,
        _RIGHT,
        (
            "One desk after the other. First strike out what finds too little, in the "
            "tables for that length; then what is over the budget.",
            "Of the ways that are left take the one with the least ms. Then go back to "
            "full attention: at which demand was it struck out, if at all?",
            "A window cannot know the room. A way that was never asked about order may "
            "be the cheapest that is good enough.",
        ),
        "Other demands, other answers: no way won at all desks. And the reason stands "
        "beside the choice, so that whoever comes after you knows when it falls.",
        "choices = {\n"
        + "".join(f'    "{n}": ("{w}", "{r}"),\n' for n, (w, r) in _RIGHT.items())
        + "}",
        _WRONG,
        tidy=tidy_choices,
        form="For each desk a pair is wanted: a way as it stands in the tables, and "
        '"intents", "rooms", "budget" or "nothing", both in quotes.',
        names=tuple(product(WAYS, AGAINST)),
    ),
)
