"""Mistakes in counting the keys that a head uses."""

from attnlib.clinic.catalogue import Mistake

_FIRST = (
    "An average of weights is wider than each of them: two heads that are one-hot on "
    "different keys look like one that uses two."
)
_HEADS = "A sick head among healthy ones disappears in their mean."

MISTAKES = (
    Mistake(
        "heads_averaged_first",
        "M42",
        "The weights are averaged over the heads",
        _FIRST + " nn.MultiheadAttention hands out that average unless told otherwise.",
        "Take the entropy of every row of every head; average after that.",
        "pytorch/pytorch#34537",
    ),
    Mistake(
        "batch_averaged_first",
        "",
        "The weights are averaged over the texts",
        "An average of weights is wider than each of them. What two texts look at has "
        "nothing to do with one another.",
        "Take the entropy of every row; average after that.",
    ),
    Mistake(
        "rows_averaged_first",
        "",
        "The weights are averaged over the rows",
        "An average of weights is wider than each of them. Queries that each look at "
        "one key of their own would seem to look everywhere.",
        "Take the entropy of every row; average after that.",
    ),
    Mistake(
        "empty_rows_counted",
        "",
        "Empty rows are counted",
        "A row of zeros looks at nothing, and its entropy of 0 says nothing. With many "
        "fillers every head would seem to be one-hot.",
        "Which rows have any weight at all? Divide by their number.",
    ),
    Mistake(
        "first_texts_rows",
        "",
        "The empty rows of the first text are taken for those of all",
        "Each text has fillers of its own.",
        "Ask for each row of each text.",
    ),
    Mistake(
        "rows_of_one_key_left_out",
        "",
        "Rows that look at one key are taken for empty ones",
        "Both have an entropy of 0. But a one-hot row looks at something, and it is "
        "just what you are looking for.",
        "Ask the weights, not the entropy: an empty row has none above 0.",
    ),
    Mistake(
        "log_of_no_weight",
        "",
        "A weight of 0 gives NaN",
        "ln 0 is minus infinity, and 0 times that is NaN. By agreement 0 ln 0 is 0.",
        "diagnostics.entropy does it for you; or put 1 in place of 0 inside the log.",
    ),
    Mistake(
        "log_of_empty_rows",
        "",
        "A weight of 0 gives NaN",
        "ln 0 is minus infinity, and 0 times that is NaN. By agreement 0 ln 0 is 0.",
        "diagnostics.entropy does it for you; or put 1 in place of 0 inside the log.",
    ),
    Mistake(
        "participation",
        "",
        "The sum of squares, where the entropy is meant",
        "1 / Σw² counts keys, too, and cares more for the largest weight. The task "
        "asks for e to the entropy.",
        "The entropy is the mean of -ln w, by the weights themselves.",
    ),
    Mistake(
        "keys_counted",
        "",
        "All keys with any weight are counted",
        "Softmax gives every key that is allowed some weight, however little.",
        "e to the entropy counts a key by how much it is used.",
    ),
    Mistake(
        "largest_weight",
        "",
        "Only the largest weight of a row is used",
        "Two rows with the same largest weight may spread the rest on one key or many.",
        "e to the entropy looks at all weights of a row.",
    ),
    Mistake(
        "spread_negative",
        "",
        "The minus of the entropy is missing",
        "ln of a weight is negative, and so is its mean.",
        "-Σ w ln w.",
    ),
    Mistake(
        "bits_for_nats",
        "",
        "The entropy is in bits, and e is raised to it",
        "log2 goes with 2, ln with e. Both count the same keys, but not crosswise.",
        "np.log and np.exp belong together.",
    ),
    Mistake(
        "heads_in_one",
        "",
        "One number for all heads",
        _HEADS,
        "The mean is taken over texts and rows; the axis of the heads stays.",
    ),
    Mistake(
        "texts_alone",
        "",
        "One number for each head of each text",
        "The task asks for one number a head.",
        "The mean is taken over the texts, too.",
    ),
    Mistake(
        "mean_of_means",
        "",
        "A mean over texts of means over rows",
        "A text with two rows would count as much as one with twenty.",
        "All rows that are not empty count alike: one sum, divided by their number.",
    ),
    Mistake(
        "queries_alone",
        "",
        "The mean over the wrong axes: one number for each query",
        "weights are (batch, n_heads, n_q, n_k). The entropy takes away the last axis.",
        "Which of the three axes that are left has to stay?",
    ),
    Mistake(
        "rows_summed",
        "",
        "The entropies are summed",
        "A sum grows with the number of rows, and e to it beyond all keys there are.",
        "Divide by the number of rows that are not empty.",
    ),
    Mistake(
        "median_of_rows",
        "",
        "The median, where the mean is meant",
        "The task asks for the mean.",
        "Sum, and divide by the number of rows that are not empty.",
    ),
    Mistake(
        "entropy_left",
        "",
        "The entropy in nats, where keys are meant",
        "1.1 nats say little to a reader; 3 keys do.",
        "One step is missing, at the very end.",
    ),
    Mistake(
        "exp_before_mean",
        "",
        "The mean of keys, where keys of the mean entropy are meant",
        "e to the power of something grows fast: a few wide rows outweigh all others.",
        "First the mean, then e to it.",
    ),
    Mistake(
        "base_two_of_nats",
        "",
        "2 is raised to an entropy in nats",
        "log2 goes with 2, ln with e.",
        "np.log and np.exp belong together.",
    ),
    Mistake(
        "share_of_keys",
        "",
        "A share of the keys, where their number is meant",
        "Under a mask, n_k is not the number of keys that a query may look at.",
        "Leave out the division by n_k.",
    ),
)
