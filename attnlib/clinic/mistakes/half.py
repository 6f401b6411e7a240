"""Mistakes with scores in float16, and with capped scores."""

from attnlib.clinic.catalogue import Mistake

MISTAKES = (
    Mistake(
        "raw_overflow",
        "M35",
        "The raw score leaves float16 before it is scaled",
        "float16 ends at 65504. A raw score beyond that is stored as infinity, and "
        "infinity divided by anything stays infinity.",
        "Make the numbers small before you multiply them, not afterwards.",
        "huggingface/transformers#17437",
    ),
    Mistake(
        "overflow_clipped",
        "M35",
        "The raw score is cut off at 65504",
        "It is finite now, and wrong: all scores that were larger have become one.",
        "Make the numbers small before you multiply them, not afterwards.",
        "huggingface/transformers#18057",
    ),
    Mistake(
        "infinity_to_zero",
        "M35",
        "A score that overflowed is set to 0",
        "The largest score of all then counts as a middling one, and nothing warns.",
        "Make the numbers small before you multiply them, not afterwards.",
    ),
    Mistake(
        "infinity_to_largest",
        "M35",
        "An infinity is written over by 65504",
        "It is finite now, and wrong: all scores that overflowed have become one, and "
        "a larger one than any that is right.",
        "Make the numbers small before you multiply them, not afterwards.",
    ),
    Mistake(
        "scale_half_d_k",
        "M03",
        "Divided by half of d_k, where its root is meant",
        "`d_k ** 1 / 2` is read from the left: first d_k to the power of 1, then half "
        "of it.",
        "Brackets, or 0.5.",
    ),
    Mistake(
        "scale_of_128",
        "M02",
        "Divided by the root of 128, whatever d_k is",
        "128 is the size in the lesson's example.",
        "Which axis of q says how many numbers one query has?",
    ),
    Mistake(
        "maximum_subtracted",
        "",
        "The largest score of each row is subtracted",
        "The weights would be the same, and -inf minus -inf makes NaN of an empty row. "
        "It is the first step of a softmax, which comes after this function.",
        "Stop one step earlier.",
    ),
    Mistake(
        "lowered_10000",
        "M11",
        "Forbidden scores are lowered by 10000",
        "Where seen scores lie at -20000, that is not low enough. And a hidden score "
        "still depends on what is hidden.",
        "Write over the hidden scores. Which score gives a weight of exactly 0?",
    ),
    Mistake(
        "fill_lowest",
        "M14",
        "The fill is -65504, the lowest number of float16",
        "It hides, as long as one key is seen. Where none is, all scores of the row "
        "are equal, and softmax gives every hidden key the same share. And two such "
        "masks added make -inf after all.",
        "Which score can softmax tell from a real one, however low?",
        "pytorch/pytorch#103963",
    ),
    Mistake(
        "fill_billion",
        "M13",
        "The fill is -1e9, which float16 cannot hold",
        "float16 ends at -65504. There masked_fill of PyTorch raises an error; it "
        "survives only in an array of a wider type. It is also a number like any "
        "other: an empty row comes out even.",
        "-inf exists in every float type.",
        "NVIDIA/apex#1105",
    ),
    Mistake(
        "fill_to_scores",
        "M13",
        "The lowest number is added to the scores",
        "A hidden score that was negative becomes -inf, and one that was positive "
        "stays finite. What hides should not depend on what is hidden.",
        "Write over the hidden scores, do not add to them.",
        "huggingface/lerobot#710",
    ),
    Mistake(
        "empty_row_zeroed",
        "M14",
        "An empty row gets scores of 0",
        "0 is a score like any other: softmax makes equal weights of it, on keys that "
        "are all hidden.",
        "Leave the row at -inf. The softmax of attnlib makes zeros of it.",
        "pytorch/pytorch#103749",
    ),
    Mistake(
        "softmax_applied",
        "",
        "Weights are returned, where scores are meant",
        "The softmax comes after this function.",
        "Stop one step earlier.",
    ),
    Mistake(
        "softmaxed_then_masked",
        "M10",
        "Weights are returned, and masked after the softmax",
        "The softmax comes after this function. Before it a mask hides; after it the "
        "hidden keys have had their share.",
        "Stop one step earlier, and hide there.",
    ),
    Mistake(
        "cap_missing",
        "M37",
        "Nothing is capped",
        "The scores are as large as before.",
        "cap · tanh(scores / cap).",
        "vllm-project/vllm#7022",
    ),
    Mistake(
        "cap_after_mask",
        "M37",
        "Capped after the mask: hidden keys are back",
        "tanh(-inf) is -1, so a hidden score becomes -cap, a number like any other.",
        "First bend the scores, then hide.",
        "Dao-AILab/flash-attention#1016",
    ),
    Mistake(
        "cap_clips",
        "",
        "Clipped, where the scores should be bent",
        "Beyond the cap all scores become equal, and none has a gradient.",
        "A tanh never becomes quite flat: order and gradient stay.",
    ),
    Mistake(
        "cap_clips_above",
        "",
        "Clipped, and above only",
        "Beyond the cap all scores become equal, and none has a gradient.",
        "A tanh bends both ends and keeps the order.",
    ),
    Mistake(
        "cap_not_restored",
        "",
        "Not multiplied by the cap again",
        "Your scores end at -1 and 1, so the weights stay nearly even.",
        "What divides before the tanh multiplies after it.",
    ),
    Mistake(
        "cap_not_divided",
        "",
        "Not divided by the cap before the tanh",
        "Scores of 3 are already at the end of your tanh. Small scores should stay "
        "what they are.",
        "What multiplies after the tanh divides before it.",
    ),
    Mistake(
        "cap_multiplied",
        "",
        "Multiplied by the cap before the tanh, where it should be divided",
        "Every score but the smallest is at the end of your tanh.",
        "Small scores should stay what they are.",
    ),
    Mistake(
        "cap_upside_down",
        "",
        "Multiplied before the tanh and divided after it",
        "The other way round, small scores stay what they are, and large ones end at "
        "the cap.",
        "Where does your largest possible score lie?",
    ),
    Mistake(
        "cap_of_ones",
        "",
        "The cap is not used: a plain tanh",
        "All scores end at -1 and 1, so the weights stay nearly even.",
        "The cap says where the scores end.",
    ),
    Mistake(
        "cap_scales",
        "",
        "Divided by the cap, without a tanh",
        "That is a temperature. It makes all scores smaller, and bounds none.",
        "Where does your largest possible score lie?",
    ),
    Mistake(
        "cap_by_sigmoid",
        "",
        "A sigmoid, where a tanh is meant",
        "A sigmoid runs from 0 to 1: a score of 0 becomes half the cap, and no score "
        "is negative.",
        "Small scores should stay what they are.",
    ),
    Mistake(
        "cap_by_arctan",
        "",
        "An arctan, where a tanh is meant",
        "It is bounded, too, but 2/π makes small scores smaller by a third.",
        "Small scores should stay what they are: look up the formula under softcap.",
    ),
    Mistake(
        "cap_by_softsign",
        "",
        "score / (1 + |score| / cap), where a tanh is meant",
        "It is bounded, too, but a score as large as the cap becomes half of it, and a "
        "tanh leaves it 0.76.",
        "Look up the formula under softcap.",
    ),
    Mistake(
        "cap_rescales_rows",
        "",
        "Each row is stretched or shrunk until its largest score is the cap",
        "One score then moves all others of its row. Each should be bent by itself.",
        "cap · tanh(scores / cap), score by score.",
    ),
    Mistake(
        "cap_beyond_only",
        "",
        "Only scores beyond the cap are bent",
        "Then the order is lost: a score a little below the cap stays, and one a "
        "little above it becomes 0.76 of the cap.",
        "One formula for all scores: it hardly moves the small ones.",
    ),
    Mistake(
        "cap_size_only",
        "",
        "The sign is lost: the size of each score is bent",
        "A key that does not fit at all would get as much attention as one that does.",
        "tanh keeps the sign by itself.",
    ),
    Mistake(
        "cap_rescales",
        "",
        "The whole table is shrunk until the largest score fits",
        "One large score then makes all others smaller. Each should be bent by itself.",
        "cap · tanh(scores / cap), score by score.",
    ),
    Mistake(
        "cap_above_only",
        "",
        "Only positive scores are bent",
        "Very negative scores stay as they are. The range is from -cap to cap.",
        "tanh bends both ends by itself.",
    ),
    Mistake(
        "cap_of_50",
        "",
        "The cap is always 50",
        "That is Gemma 2's. Here it is an argument.",
        "Use the argument.",
    ),
)
