"""Slips in the first exercises: a weighted mean, and the score table of the article."""

from attnlib.clinic.catalogue import Mistake

MISTAKES = (
    Mistake(
        "weights_forgotten",
        "",
        "The plain mean: the weights are not used",
        "Every value counts the same, so what the weights say is lost.",
        "Multiply each value by its own weight before adding.",
    ),
    Mistake(
        "divided_by_n",
        "",
        "Divided by the number of values",
        "The weights already sum to one. A second division makes the result n times "
        "too small: .mean() divides, .sum() does not.",
        "Add the products up, and stop there.",
    ),
    Mistake(
        "products_not_added",
        "",
        "The products are not added",
        "A mean is one number. Yours still has one number for each value.",
        "Add the products up.",
    ),
    Mistake(
        "values_only_added",
        "",
        "The values are added without their weights",
        "The sum of the values grows with their number; a mean stays among them.",
        "Multiply each value by its own weight before adding.",
    ),
    Mistake(
        "weights_added",
        "",
        "Weight plus value, where weight times value is meant",
        "A weight says how much of a value to take. Taking a share is a product.",
        "Which operator takes a share of something?",
    ),
    Mistake(
        "weights_squared",
        "",
        "The weights are multiplied in twice",
        "Each value is taken times its weight, and times its weight again.",
        "Use each weight once.",
    ),
    Mistake(
        "weights_reversed",
        "",
        "The weights are used from last to first",
        "The first weight belongs to the first value.",
        "Keep both arrays in their order.",
    ),
    Mistake(
        "rank_only",
        "",
        "Only the ranks are compared",
        "A table may have a small rank and still point in a direction that X does not "
        "have. The rank must be small enough, but that is not all.",
        "What must the columns of the table be made of? And its rows?",
    ),
    Mistake(
        "left_side_only",
        "",
        "Only the columns are tested",
        "The columns of X M Xᵀ are mixtures of the columns of X. So are its rows, and "
        "yours may be anything.",
        "Do to the rows what you do to the columns.",
    ),
    Mistake(
        "right_side_only",
        "",
        "Only the rows are tested",
        "The rows of X M Xᵀ are mixtures of the columns of X. So are its columns, and "
        "yours may be anything.",
        "Do to the columns what you do to the rows.",
    ),
    Mistake(
        "determinant",
        "",
        "The determinant is tested",
        "A determinant says whether a table has full rank. That alone does not say "
        "whether X can make it.",
        "Compare the table with what X can make, not with 0.",
    ),
    Mistake(
        "full_rank_only",
        "",
        "Only X is asked: any table passes once X has full rank",
        "That is enough, but not needed: an X of smaller rank makes some tables too.",
        "Ask whether this table is among those that X can make.",
    ),
    Mistake(
        "exact_comparison",
        "",
        "Floating-point numbers are compared with ==",
        "Two ways to the same table differ in the last digits, so == says no to "
        "tables that exist.",
        "Allow a small difference.",
    ),
    Mistake(
        "verdict_inverted",
        "",
        "True and False are exchanged",
        "Your test is right, and its answer turned round.",
        "Read the description once more: what does True mean?",
    ),
    Mistake(
        "always_true",
        "",
        "It always says True",
        "Then no table would be impossible, not even the article's.",
        "Give it a table that X cannot make.",
    ),
    Mistake(
        "always_false",
        "",
        "It always says False",
        "Then no table would be possible, not even X @ X.T.",
        "Give it X @ X.T.",
    ),
)
