"""Mistakes in the loss of a student's attention on its teacher's."""

from attnlib.clinic.catalogue import Mistake

_KL = (
    "The loss of a row is KL(teacher || student), the sum over keys of p (ln p − ln s)."
)
_WEIGHTS = (
    "Weights are numbers from 0 to 1: to a softmax they are nearly equal, and what "
    "comes out is nearly even."
)

MISTAKES = (
    Mistake(
        "looks_article",
        "M44",
        "The loss of the article: weights go through a softmax once more",
        _WEIGHTS + " Then the sum is divided by the batch, and not by the rows.",
        "log_softmax of the scores for the student, the weights as they are for the "
        "teacher, and a mean over rows.",
    ),
    Mistake(
        "looks_article_scores",
        "M44",
        "The loss of the article, with scores for the student",
        _WEIGHTS + " That is so for the teacher's here, and a hidden key, which gets a "
        "weight by it, costs infinitely much.",
        "log_softmax of the scores for the student, the weights as they are for the "
        "teacher, no temperature, and a mean over rows.",
    ),
    Mistake(
        "looks_article_rows",
        "M44",
        "The loss of the article, averaged over rows: weights go through a softmax "
        "once more",
        _WEIGHTS,
        "log_softmax of the scores for the student, the weights as they are for the "
        "teacher, and no temperature.",
    ),
    Mistake(
        "looks_score_distance",
        "",
        "Squared distances of scores",
        "That is TinyBERT's loss, and a good one. The task asks for the divergence.",
        _KL,
    ),
    Mistake(
        "looks_softmax_twice",
        "M44",
        "The student goes through softmax twice",
        _WEIGHTS,
        "log_softmax of the scores, not of the weights.",
    ),
    Mistake(
        "looks_no_log",
        "M44",
        "The student's weights go in, not their logarithms",
        _KL + " kl_div takes no logarithm of its first argument.",
        "log_softmax for the student.",
        "microsoft/ProDA#20",
    ),
    Mistake(
        "looks_log_of_zero",
        "",
        "The logarithm comes after a softmax that gave 0",
        "Where a score lies far below the largest one, softmax is 0 to the machine. "
        "The logarithm of that is −∞: the loss is infinite, and teaches nothing.",
        "log_softmax of the scores takes both steps at once, and loses nothing.",
    ),
    Mistake(
        "looks_zero_costs_nothing",
        "",
        "Where the student's softmax is 0, nothing is counted",
        "A softmax is 0 to the machine where a score lies far below the largest one, "
        "too, and no key is hidden there. Such a student is the most wrong of all.",
        "log_softmax of the scores; then replace what is −∞, the hidden keys alone.",
    ),
    Mistake(
        "looks_scores",
        "M44",
        "The student's scores go in, not their log-softmax",
        "Scores are logarithms of weights but for a number in each row, and the loss "
        "would fall with that number without end.",
        "log_softmax for the student.",
    ),
    Mistake(
        "looks_hidden_seen",
        "",
        "Hidden keys get a part of the student's weight",
        "−∞ was replaced before the softmax, so hidden keys have weight again.",
        "Softmax first; then replace what is −∞ in the logarithms.",
    ),
    Mistake(
        "looks_halved",
        "",
        "The student's scores are divided by a temperature",
        "The teacher's weights are not softened, so a perfect student would be "
        "punished.",
        "No temperature: attention has its own scale.",
    ),
    Mistake(
        "looks_softened",
        "",
        "Both are softened by a temperature",
        "That is Hinton's way with answers. Where a teacher looks 90% at one key, the "
        "student is asked to look there less.",
        "No temperature: attention has its own scale.",
    ),
    Mistake(
        "looks_times_four",
        "",
        "The loss is multiplied by 4, the square of a temperature",
        "That factor belongs to a temperature of 2, and the task has none.",
        "Leave T out.",
    ),
    Mistake(
        "looks_over_queries",
        "",
        "The softmax runs down the queries",
        "Each query hands out 1 over its keys.",
        "The last axis.",
    ),
    Mistake(
        "looks_over_heads",
        "",
        "The softmax runs over the heads",
        "Each query hands out 1 over its keys, in each head.",
        "The last axis.",
    ),
    Mistake(
        "looks_teacher_softmax",
        "M44",
        "The teacher's weights go through softmax once more",
        _WEIGHTS + " The student would be asked to look everywhere.",
        "They are weights already.",
    ),
    Mistake(
        "looks_hard",
        "",
        "Only the key that the teacher looks at most counts",
        "What else it looks at is a part of what it teaches.",
        "Leave the argmax out.",
    ),
    Mistake(
        "looks_heads_first",
        "M42",
        "The heads are averaged first",
        "An average of heads is no head: two one-hot heads look like one that is even.",
        "The divergence of each head; the mean after that.",
        "pytorch/pytorch#34537",
    ),
    Mistake(
        "looks_nan_hidden",
        "M44",
        "Hidden keys give NaN",
        "Their weight is 0 and their logarithm −∞: 0 · (−∞) is NaN.",
        "Put any finite number in the place of −∞, before the product.",
    ),
    Mistake(
        "looks_nan_zero_weight",
        "M44",
        "A weight of 0 gives NaN",
        "The logarithm of 0 is −∞, and 0 · (−∞) is NaN. p ln p has to be 0 there.",
        "torch.xlogy(p, p), or replace what is 0 before the logarithm.",
    ),
    Mistake(
        "looks_nan_rows_zero",
        "M44",
        "NaN is replaced too late: whole rows are lost",
        "One key of weight 0 makes the sum of its row NaN, and then the whole row "
        "counts as 0.",
        "Replace what is not finite before the sum over keys.",
    ),
    Mistake(
        "looks_hidden_rows_zero",
        "M44",
        "NaN is replaced too late: rows with a hidden key are lost",
        "One hidden key makes the sum of its row NaN, and then the whole row counts "
        "as 0.",
        "Replace what is not finite before the sum over keys.",
    ),
    Mistake(
        "looks_epsilon",
        "",
        "A number inside the logarithms is too large",
        "0.01 inside a logarithm changes what it should only protect. log_softmax "
        "needs none.",
        "log_softmax of the scores.",
    ),
    Mistake(
        "looks_exchanged",
        "M44",
        "Student and teacher are exchanged",
        _KL + " The other way round, a student is forgiven for not looking where its "
        "teacher looks.",
        "Whose weights stand in front of the bracket?",
    ),
    Mistake(
        "looks_exchanged_infinite",
        "M44",
        "Student and teacher are exchanged",
        _KL + " The other way round, it is infinite where the teacher does not look "
        "at a key and the student does.",
        "Whose weights stand in front of the bracket?",
    ),
    Mistake(
        "looks_student_in_front",
        "M44",
        "The student's weights stand in front of the bracket",
        _KL + " p are the teacher's weights, in front as well.",
        "Whose weights stand in front of the bracket?",
    ),
    Mistake(
        "looks_p_once",
        "",
        "p stands in front of ln p alone",
        _KL + " It is a factor of the whole bracket: p ln p − p ln s.",
        "The teacher's weights times ln s, too.",
    ),
    Mistake(
        "looks_p_missing",
        "",
        "p in front of the bracket is missing",
        _KL + " Without it, keys that the teacher hardly looks at count as much as "
        "the others.",
        "The teacher's weights times the difference.",
    ),
    Mistake(
        "looks_halfway",
        "",
        "Jensen and Shannon's divergence",
        "Both are compared with their mean. That is no bad loss, but another one.",
        _KL,
    ),
    Mistake(
        "looks_entropy_missing",
        "",
        "The teacher's entropy is missing",
        "The cross-entropy alone has the same gradient, but is not 0 where both agree.",
        "ln p − ln s, not −ln s alone.",
    ),
    Mistake(
        "looks_weights_apart",
        "",
        "Squared distances of weights",
        "A weight of 0.001 in the place of 0.1 costs next to nothing by that.",
        _KL,
    ),
    Mistake(
        "looks_sign",
        "",
        "The sign is wrong: a good student is punished",
        "A divergence is never negative.",
        "Which of the two logarithms has the minus?",
    ),
    Mistake(
        "looks_bits",
        "",
        "The logarithms are to base 2",
        "ln is the natural logarithm, as torch.log.",
        "torch.log, torch.log_softmax.",
    ),
)
