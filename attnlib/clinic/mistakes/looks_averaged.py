"""Mistakes in the rows that a distillation loss counts, and in their mean."""

from attnlib.clinic.catalogue import Mistake

_ROWS = "The loss is the mean over all heads and all real questions."
_KL = (
    "The loss of a row is KL(teacher || student), the sum over keys of p (ln p − ln s)."
)
_NONE = "reduction='none', a sum over keys, and then the mean of rows that count."

MISTAKES = (
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
        "looks_rows_reshaped",
        "M04",
        "The axes of the rows are exchanged by reshape",
        "Rows are (batch, n_heads, n_q). reshape keeps the order of the numbers, and "
        "only cuts them anew, so counted picks the wrong ones.",
        "transpose exchanges two axes.",
    ),
    Mistake(
        "looks_kl_div_batchmean",
        "M44",
        "The sum over all rows, divided by the batch",
        _ROWS + " reduction='batchmean' divides by the first axis alone, so the loss "
        "grows with heads and questions; and fillers are in it.",
        _NONE,
        "pytorch/pytorch#5282",
    ),
    Mistake(
        "looks_kl_div_mean",
        "M44",
        "The mean over all numbers: over keys and fillers as well",
        _KL + " reduction='mean' divides by the keys, too, and fillers are in it.",
        _NONE,
        "HikariTJU/LD#74",
    ),
    Mistake(
        "looks_kl_div_sum",
        "",
        "The sum over all rows, those of fillers as well",
        _ROWS,
        _NONE,
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
