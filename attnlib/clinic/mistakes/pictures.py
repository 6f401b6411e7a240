"""Mistakes in cutting a picture into patches."""

from attnlib.clinic.catalogue import Mistake

_RESHAPE = (
    "reshape keeps the order in which pixels are read, line by line through the whole "
    "picture."
)
_ORDER = (
    "After the cut the axes are: row of patches, row inside, column of patches, column "
    "inside. The two that say which patch come first, the two that say which pixel "
    "come last."
)
_ONE_SWAP = "Which two axes have to change places, so that the inner ones come last?"
_READ = "Patches come as one reads: left to right, then the next row. So do pixels."
_SHAPE = "One row for each patch, with size * size numbers in it."

MISTAKES = (
    Mistake(
        "patches_not_moved",
        "M20",
        "The picture is reshaped, and no axis is moved: stripes, not patches",
        _RESHAPE,
        _ONE_SWAP,
    ),
    Mistake(
        "patches_by_columns",
        "",
        "The patches are counted from top to bottom",
        _READ,
        "The row of patches is the slower of the two outer axes.",
    ),
    Mistake(
        "patches_pixels_by_columns",
        "",
        "The pixels of each patch are read from top to bottom",
        _READ,
        "The row inside a patch is the slower of the two inner axes.",
    ),
    Mistake(
        "patches_all_by_columns",
        "",
        "The picture is turned over: patches and pixels are read from top to bottom",
        _READ,
        "Cut the picture as it is, not its transpose.",
    ),
    *(
        Mistake(key, "M20", name, _ORDER, _ONE_SWAP)
        for key, name in (
            ("patches_first_axes", "The first two axes are swapped"),
            ("patches_last_axes", "The last two axes are swapped"),
            ("patches_outer_axes", "Rows and columns of patches are swapped in place"),
            ("patches_inner_axes", "Rows and columns of pixels are swapped in place"),
            ("patches_axes_reversed", "All four axes are turned over"),
        )
    ),
    Mistake(
        "patches_every_nth",
        "M22",
        "Each row holds every n-th pixel of the picture, not a square of it",
        "Pixels that lie side by side belong to one patch.",
        "The inner axes say where in a patch a pixel lies: they come last.",
    ),
    Mistake(
        "patches_columns_of_pixels",
        "M20",
        "The picture is turned over and reshaped: stripes, from top to bottom",
        _RESHAPE,
        _ONE_SWAP,
    ),
    Mistake(
        "patches_counted",
        "",
        "size is taken for the number of patches along a side",
        "size counts the pixels along one side of a patch. There are height // size "
        "patches below each other.",
        "Which of the two numbers is size, in the reshape?",
    ),
    Mistake(
        "patches_counted_in_the_cut",
        "",
        "The cut has size in the wrong places",
        "Each axis is cut in two: first how many patches, then the size of one. "
        + _ORDER,
        "Which of the two numbers is size, in the reshape?",
    ),
    Mistake(
        "patches_sides_swapped",
        "",
        "Height and width are exchanged in the cut",
        "The first axis of the picture is its height: it is cut into height // size "
        "rows of patches.",
        "Which side of the picture does the first axis run along?",
    ),
    Mistake(
        "patches_spread_out",
        "M22",
        "The pixels of a patch do not lie side by side",
        "Each axis is cut in two: first how many patches, then the size of one. The "
        "other way round, the pixels of one row lie whole patches apart.",
        "Which of the two numbers is size, in the reshape?",
    ),
    Mistake(
        "patches_step_one",
        "",
        "Each patch begins one pixel after the last one",
        "Patch number i begins at pixel i * size, not at pixel i.",
        "How far does each step go?",
    ),
    Mistake(
        "patches_overlapping",
        "",
        "The patches overlap",
        "A new patch begins after size pixels, not after one.",
        "How far does each step go?",
    ),
    *(
        Mistake(
            key,
            "",
            "The picture is taken for a square",
            f"There are as many patches across as down in yours, counted by {side}.",
            "Count the two sides apart: height // size and width // size.",
        )
        for key, side in (
            ("patches_square_by_height", "height"),
            ("patches_square_by_width", "width"),
        )
    ),
    Mistake(
        "patches_in_a_grid",
        "",
        "The patches stand in a grid",
        "Attention wants one axis of keys. " + _SHAPE,
        "Join the rows and columns of patches to one axis.",
    ),
    Mistake(
        "patches_square",
        "",
        "Each patch is still a square",
        "A key is made from a row of numbers. " + _SHAPE,
        "Join the last two axes.",
    ),
    Mistake(
        "patches_four_axes",
        "",
        "The axes are in the right order, and there are still four of them",
        _SHAPE,
        "One reshape is left to do.",
    ),
    Mistake(
        "patches_as_columns",
        "",
        "The patches are the columns",
        _SHAPE,
        "A row is one patch, as a row is one token.",
    ),
    Mistake(
        "patches_joined_by_pixels",
        "",
        "The last reshape has its two sizes exchanged",
        _SHAPE,
        "What do rows stand for, and how many numbers has one?",
    ),
    Mistake(
        "patches_below_each_other",
        "",
        "The patches stand below one another, each still a square",
        _SHAPE,
        "Make one row of each patch before you put them together.",
    ),
    Mistake(
        "patches_means",
        "",
        "Each patch is only its mean",
        "What is on a patch is in its single pixels. " + _SHAPE,
        "Keep all of them.",
    ),
)
