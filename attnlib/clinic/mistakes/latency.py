"""Mistakes in measuring how long a request takes."""

from attnlib.clinic.catalogue import Mistake

_WARM = (
    "The first calls are slow: memory is not there yet, and code is chosen for the "
    "first time. A desk that is open is warm."
)
_MEDIAN = (
    "Now and then a call is held up by something else on the machine. The median does "
    "not ask how far out it lies."
)
_EACH = "Each call is timed by itself: its own start, and its own end."
_MS = "The clock gives seconds, and milliseconds are wanted: a thousand for each."

MISTAKES = (
    Mistake(
        "latency_cold",
        "",
        "The cold calls are timed",
        _WARM,
        "Call it n_warm times before the first look at the clock.",
    ),
    Mistake(
        "latency_warm_counted",
        "",
        "The calls that warm up are counted, too",
        _WARM,
        "What they took belongs into no list.",
    ),
    Mistake(
        "latency_one_warm",
        "",
        "It is warmed up once, not n_warm times",
        _WARM,
        "How often does your first loop turn?",
    ),
    Mistake(
        "latency_warm_less",
        "",
        "One warm-up call is missing",
        _WARM,
        "How often does your first loop turn?",
    ),
    Mistake(
        "latency_warm_more",
        "",
        "There is one warm-up call too many",
        "n_warm says how many calls do not count. The next one is timed.",
        "How often does your first loop turn?",
    ),
    Mistake(
        "latency_warm_of_timed",
        "",
        "The calls to warm up are taken from those that are timed",
        "n_timed calls are timed after the n_warm calls, not together with them.",
        "There are n_warm + n_timed calls in all.",
    ),
    Mistake(
        "latency_timed_less",
        "",
        "One timed call is missing",
        _EACH,
        "How many numbers does your list hold in the end?",
    ),
    Mistake(
        "latency_timed_more",
        "",
        "There is one timed call too many",
        _EACH,
        "How many numbers does your list hold in the end?",
    ),
    Mistake(
        "latency_threads",
        "",
        "It is not measured on one thread",
        "With several threads the time depends on what else the machine does, and a "
        "server answers several requests at once, one on each thread.",
        "set_threads takes the number. Call it before anything is timed.",
    ),
    Mistake(
        "latency_one_start",
        "",
        "All calls are timed from one start",
        _EACH,
        "Look at the clock inside the loop, before the call.",
    ),
    Mistake(
        "latency_from_warm",
        "",
        "All calls are timed from before the warm-up",
        _EACH,
        "Look at the clock inside the second loop, before the call.",
    ),
    Mistake(
        "latency_clock",
        "",
        "The time of day is taken for a duration",
        _EACH + " What the clock shows means nothing alone; a difference does.",
        "Subtract what it showed before the call.",
    ),
    Mistake(
        "latency_nothing",
        "",
        "Your two looks at the clock show the same",
        "Nothing was called between them, or the seconds were cut to whole ones.",
        "First clock(), then the call, then clock() again.",
    ),
    Mistake(
        "latency_mean",
        "",
        "That is a mean, not the median",
        _MEDIAN,
        "np.median takes a list. One clock around all calls can only give a mean.",
    ),
    Mistake(
        "latency_least",
        "",
        "That is the fastest call",
        _MEDIAN + " The fastest one tells what the machine can do, not what a caller "
        "waits.",
        "np.median takes a list.",
    ),
    Mistake(
        "latency_most",
        "",
        "That is the slowest call",
        _MEDIAN,
        "np.median takes a list.",
    ),
    Mistake(
        "latency_total",
        "",
        "That is the time of all calls together",
        "What one request takes is wanted.",
        "np.median takes a list.",
    ),
    Mistake(
        "latency_first",
        "",
        "That is the first timed call alone",
        _MEDIAN,
        "Is there a `return` inside the loop? Collect all times in a list first.",
    ),
    Mistake(
        "latency_last",
        "",
        "That is the last call alone",
        _MEDIAN,
        "Collect all times in a list.",
    ),
    Mistake(
        "latency_tail",
        "",
        "That is what 95 of 100 calls stay below",
        "A promise to callers names it. What a call takes, as a rule, is the median.",
        "np.median takes a list.",
    ),
    Mistake(
        "latency_upper",
        "",
        "For an even number, that is the larger of the two in the middle",
        "The median of an even number of times is the mean of the two in the middle.",
        "np.median knows.",
    ),
    Mistake(
        "latency_lower",
        "",
        "For an even number, that is the smaller of the two in the middle",
        "The median of an even number of times is the mean of the two in the middle. "
        "torch.median gives the smaller one, too.",
        "np.median knows.",
    ),
    Mistake(
        "latency_two_middles",
        "",
        "For an odd number, a second one is taken beside the one in the middle",
        "An odd number of times has one in the middle, and that is the median.",
        "np.median knows.",
    ),
    Mistake(
        "latency_unsorted",
        "",
        "That is the call in the middle of the list, not of the times",
        _MEDIAN,
        "Sort first, or let np.median do it.",
    ),
    Mistake(
        "latency_unsorted_two",
        "",
        "Those are the calls in the middle of the list, not of the times",
        _MEDIAN,
        "Sort first, or let np.median do it.",
    ),
    Mistake(
        "latency_trimmed",
        "",
        "That is a mean without the fastest and the slowest",
        _MEDIAN,
        "np.median takes a list.",
    ),
    Mistake(
        "latency_seconds",
        "",
        "Those are seconds",
        _MS,
        "Times what?",
    ),
    Mistake(
        "latency_micro",
        "",
        "Those are microseconds",
        _MS,
        "Times what?",
    ),
    Mistake(
        "latency_divided",
        "",
        "It is divided by 1000, not multiplied",
        _MS,
        "A second is how many milliseconds?",
    ),
)
