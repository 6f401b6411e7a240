"""Slips in the first exercises: a weighted mean, and a distance between tables."""

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
        "largest_weight_taken",
        "",
        "Only the value with the largest weight is taken",
        "The others have weights too, and count as much as these say.",
        "Multiply each value by its own weight, then add.",
    ),
    Mistake(
        "only_columns_moved",
        "",
        "Only the columns are moved to what X can make",
        "The columns of X M Xᵀ are mixes of the columns of X. So are its rows, and "
        "yours may still be anything.",
        "Do to the rows what you do to the columns: from the right.",
    ),
    Mistake(
        "only_rows_moved",
        "",
        "Only the rows are moved to what X can make",
        "The rows of X M Xᵀ are mixes of the columns of X. So are its columns, and "
        "yours may still be anything.",
        "Do to the columns what you do to the rows: from the left.",
    ),
    Mistake(
        "transposed_for_pinv",
        "",
        "X @ X.T, where X @ pinv(X) is meant",
        "X @ X.T mixes the columns of X too, but it does not leave alone what X can "
        "make: it stretches it.",
        "Use np.linalg.pinv.",
    ),
    Mistake(
        "no_root_taken",
        "",
        "The root is missing: the squares are only added",
        "A sum of squares is a distance times itself.",
        "Take the root of the sum.",
    ),
    Mistake(
        "squares_averaged",
        "",
        "The squares are averaged, not added",
        "An average does not grow with the table; the distance does.",
        "Add the squares, then take the root.",
    ),
    Mistake(
        "largest_difference",
        "",
        "The largest difference, where all of them count",
        "One number of the table decides; the distance takes in every one.",
        "Square all differences, add, take the root.",
    ),
    Mistake(
        "differences_added",
        "",
        "The differences are added without squares",
        "That is a distance too, but another one: it treats many small differences as "
        "one large one.",
        "Square all differences, add, take the root.",
    ),
    Mistake(
        "spectral_norm",
        "",
        "np.linalg.norm(..., 2) of a table is its largest singular value",
        "For a table, the 2 does not mean the root of the sum of squares.",
        "Leave the 2 out: np.linalg.norm(table) adds all squares.",
    ),
    Mistake(
        "nearest_measured",
        "",
        "The size of the nearest table, where the distance to it is meant",
        "A table that X can make would come out far away from itself.",
        "Subtract first.",
    ),
    Mistake(
        "table_returned",
        "",
        "The differences are returned as a table",
        "How far is one number.",
        "Square all differences, add, take the root.",
    ),
    Mistake(
        "ranks_subtracted",
        "",
        "Ranks are compared",
        "A table may have a small rank and still be one that X cannot make. And a "
        "table that was rounded for printing has full rank nearly always.",
        "Compare the table with the nearest one that X can make.",
    ),
)
