"""Mistakes in the loss of a student's attention on its teacher's."""

from attnlib.clinic.catalogue import Mistake

_KL = (
    "The loss of a row is KL(teacher || student), the sum over keys of p (ln p − ln s)."
)
_ROWS = "It is the mean over all heads and all real questions."
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
    Mistake(
        "looks_fillers_counted",
        "",
        "Fillers are counted as questions",
        "What a filler looks at means nothing, and copying it takes strength from "
        "what does.",
        "Leave out the rows where counted is False.",
    ),
    Mistake(
        "looks_first_texts_rows",
        "",
        "The fillers of the first text are taken for those of all",
        "Each text has fillers of its own.",
        "counted has an axis for the texts.",
    ),
    Mistake(
        "looks_fillers_alone",
        "",
        "The fillers are counted, and the questions left out",
        "True in counted says: a real question.",
        "The other half.",
    ),
    Mistake(
        "looks_fillers_as_zeros",
        "",
        "Fillers add 0, and are counted all the same",
        _ROWS + " A batch with many fillers would seem to be well copied.",
        "Divide by the number of rows that count.",
    ),
    Mistake(
        "looks_batchmean",
        "M44",
        "Divided by the batch, not by the rows",
        _ROWS + " reduction='batchmean' divides by the first axis alone, so the loss "
        "grows with heads and questions.",
        "How many rows were summed up?",
        "pytorch/pytorch#5282",
    ),
    Mistake(
        "looks_mean_of_keys",
        "M44",
        "The mean is taken over keys as well",
        _KL + " reduction='mean' divides by the keys, too.",
        "A sum over keys; a mean over rows.",
        "HikariTJU/LD#74",
    ),
    Mistake(
        "looks_summed",
        "",
        "The sum over rows is taken, not the mean",
        _ROWS,
        "How many rows were summed up?",
    ),
    Mistake(
        "looks_heads_summed",
        "",
        "The heads are summed up",
        _ROWS,
        "Divide by the heads, too.",
    ),
    Mistake(
        "looks_rows_summed",
        "",
        "The rows are summed up, and only the heads averaged",
        _ROWS,
        "Divide by the rows, too.",
    ),
    Mistake(
        "looks_mean_of_texts",
        "",
        "A mean over texts of means over questions",
        "A text with one question would count as much as one with three.",
        "One sum over all rows, divided by their number.",
    ),
)
