"""Mistakes in the loss of a student on its teacher."""

from attnlib.clinic.catalogue import Mistake

_KL = (
    "The loss is the mean over the batch of KL(teacher || student) = sum p (log p - "
    "log q). It is 0 where both agree."
)
_SQUARE = (
    "Gradients of softened logits are T² times smaller; T² in front of the loss undoes "
    "that."
)

MISTAKES = (
    Mistake(
        "distil_no_log",
        "M44",
        "The student's probabilities go in, not their logarithms",
        _KL + " kl_div of PyTorch takes the logarithm of neither: its first argument "
        "has to be one.",
        "log_softmax for the student.",
        "microsoft/ProDA#20",
    ),
    Mistake(
        "distil_logits",
        "M44",
        "The student's logits go in, not their log-softmax",
        _KL + " Logits are log-probabilities up to a number in each row, and the loss "
        "would fall with that number without end.",
        "log_softmax for the student.",
    ),
    Mistake(
        "distil_log_target",
        "M44",
        "The teacher's logarithms go in where probabilities are expected",
        _KL + " kl_div takes the logarithm of its target; that of a negative number is "
        "NaN.",
        "softmax for the teacher, or log_target=True.",
        "jongwooko/Pytorch-MiniLM#2",
    ),
    Mistake(
        "distil_log_target_dropped",
        "M44",
        "The loss is 0, whatever the two say",
        _KL + " Terms with a negative target were dropped: the teacher's logarithms "
        "went in where probabilities are expected.",
        "softmax for the teacher, or log_target=True.",
        "jongwooko/Pytorch-MiniLM#2",
    ),
    Mistake(
        "distil_log_for_target",
        "M44",
        "The terms are weighted by the teacher's logarithms",
        _KL + " The weight of a term is the teacher's probability, not its logarithm.",
        "What stands before the bracket?",
    ),
    Mistake(
        "distil_entropy_missing",
        "M44",
        "The teacher's entropy is missing",
        _KL + " The cross-entropy alone has the same gradient, but is not 0 where both "
        "agree.",
        "log p - log q, not -log q alone.",
    ),
    Mistake(
        "distil_hard",
        "M44",
        "Only the teacher's first choice counts",
        _KL + " What the teacher holds of the other classes is what it teaches.",
        "Leave the argmax out.",
    ),
    Mistake(
        "distil_softmax_twice",
        "M44",
        "The student goes through softmax twice",
        _KL + " log_softmax takes logits. Probabilities lie close together, and a "
        "second softmax makes them nearly equal.",
        "log_softmax alone.",
    ),
    Mistake(
        "distil_exchanged",
        "M44",
        "Student and teacher are exchanged",
        _KL + " KL is not symmetric: KL(student || teacher) forgives a student who "
        "says nothing of what the teacher holds possible.",
        "kl_div(input=student, target=teacher).",
    ),
    Mistake(
        "distil_over_batch",
        "M44",
        "The softmax runs down the batch, not over the classes",
        _KL + " Each example hands out 1 over its classes.",
        "The last axis.",
    ),
    Mistake(
        "distil_mean",
        "M44",
        "The mean is taken over classes as well",
        _KL + " reduction='mean' of kl_div divides by batch times classes.",
        "reduction='batchmean'.",
        "HikariTJU/LD#74",
    ),
    Mistake(
        "distil_sum",
        "M44",
        "The sum over the batch is taken, not the mean",
        _KL + " A sum grows with the batch, and the learning rate with it.",
        "reduction='batchmean'.",
    ),
    Mistake(
        "distil_mean_of_classes",
        "M44",
        "Divided by the count of classes, not by the batch",
        _KL,
        "The mean runs over the examples.",
    ),
    Mistake(
        "distil_sign",
        "M44",
        "The sign is wrong: a good student is punished",
        _KL + " It is never negative.",
        "Which of the two logarithms has the minus?",
    ),
    Mistake(
        "distil_temperature_not_squared",
        "M44",
        "T² is missing in front of the loss",
        _SQUARE,
        "Multiply by the temperature twice.",
    ),
    Mistake(
        "distil_temperature_once",
        "M44",
        "The loss is multiplied by T, not by T²",
        _SQUARE,
        "Both softmaxes are softened.",
    ),
    Mistake(
        "distil_temperature_divides",
        "M44",
        "The loss is divided by T², where it should be multiplied",
        _SQUARE,
        "Is a softened loss larger or smaller?",
    ),
    Mistake(
        "distil_temperature_of_teacher",
        "M44",
        "Only the teacher is softened",
        _KL + " Both are compared at one temperature, else a perfect student is "
        "punished.",
        "Divide both logits.",
    ),
    Mistake(
        "distil_temperature_of_student",
        "M44",
        "Only the student is softened",
        _KL + " Both are compared at one temperature, else a perfect student is "
        "punished.",
        "Divide both logits.",
    ),
    Mistake(
        "distil_temperature_multiplied",
        "M44",
        "Logits are multiplied by T, where they should be divided",
        "A temperature above 1 softens: it makes logits smaller.",
        "Which way does T go?",
    ),
    Mistake(
        "distil_temperature_ignored",
        "M44",
        "The logits are not divided by T",
        "T² stands in front, and softens nothing.",
        "Divide both logits.",
    ),
)
