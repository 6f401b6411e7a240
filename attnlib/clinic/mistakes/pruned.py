"""Mistakes in taking heads away one after the other."""

from attnlib.clinic.catalogue import Mistake

_ANEW = (
    "Of two heads that do the same, each is missed little while the other is there. "
    "Once one has gone, the other is missed."
)
_BETTER = (
    "Without some heads the loss is lower than with them, and those go first. By the "
    "size of the change they would stay."
)
_WANTED = "The heads that are kept are wanted, by their numbers, in rising order."

MISTAKES = (
    Mistake(
        "prune_ranked_once",
        "",
        "The heads are ranked once, and never looked at again",
        _ANEW,
        "Measure anew in each round, without those that have gone.",
    ),
    Mistake(
        "prune_most_missed",
        "",
        "The head that is missed most goes",
        "A high loss without a head says that the head is needed.",
        "Without which head is the loss lowest?",
    ),
    Mistake(
        "prune_most_missed_once",
        "",
        "The heads that are missed most go, ranked once",
        "A high loss without a head says that the head is needed. And it has to be "
        "measured anew in each round.",
        "Without which head is the loss lowest, now?",
    ),
    Mistake(
        "prune_ranked_alone",
        "",
        "Each head is judged by what it does alone",
        "Heads work together: two that are good alone may do the same.",
        "loss_of wants the heads that are left in, not the one that is taken out.",
    ),
    Mistake(
        "prune_best_alone_removed",
        "",
        "loss_of is given the head that is to go",
        "loss_of is a function of the heads that are *on*. Yours removes those that do "
        "best alone.",
        "Hand it all heads that are left, but one.",
    ),
    Mistake(
        "prune_two_a_round",
        "",
        "Two heads go in a round",
        _ANEW + " Two of one round may be such a pair.",
        "One a round.",
    ),
    Mistake(
        "prune_last_heads",
        "",
        "The first heads are kept, whatever the losses",
        "Nothing was measured.",
        "loss_of says what is missed.",
    ),
    Mistake(
        "prune_first_heads",
        "",
        "The first heads go, whatever the losses",
        "The losses of a round are all the same, or none was looked at.",
        "Does the list that loss_of is given leave out one head? "
        "kept[:i] + kept[i + 1:] does.",
    ),
    Mistake(
        "prune_size_of_change",
        "",
        "The head goes that changes the loss least, up or down",
        _BETTER,
        "The lowest loss says who goes, without abs.",
    ),
    Mistake(
        "prune_size_of_change_from_all",
        "",
        "The head goes that keeps the loss nearest to that of all heads",
        _BETTER,
        "The lowest loss says who goes, without abs.",
    ),
    Mistake(
        "prune_off_handed_over",
        "",
        "loss_of is given the heads that are off",
        "loss_of is a function of the heads that are *on*. Yours asks for the loss "
        "with those that have gone, and one more.",
        "Hand it all heads that are left, but one.",
    ),
    Mistake(
        "prune_places_left_out",
        "",
        "A place in the list is taken for the number of a head, and left out",
        "After the first round, the head at place 2 need not be head 2. Where it has "
        "gone already, nothing is left out.",
        "Let the loop run over the heads that are left, not over "
        "range(len(...)) of them.",
    ),
    Mistake(
        "prune_place_for_head",
        "",
        "A place in the list is taken for the number of a head",
        "After the first round, the head at place 2 need not be head 2.",
        "pop(place) removes by place, remove(head) by number.",
    ),
    Mistake(
        "prune_built_up",
        "",
        "Heads are added one by one, where they should be taken away",
        "That is a way of its own, and may end with other heads.",
        "Start with all heads.",
    ),
    Mistake(
        "prune_best_set",
        "",
        "All sets were tried, and the best one taken",
        "That is as good as it gets, and takes 2^n_heads losses: with 144 heads never. "
        "The task asks for one head after the other.",
        "One head goes a round.",
    ),
    Mistake(
        "prune_one_too_many",
        "",
        "One head too many goes",
        "The budget is how many are kept.",
        "When does the loop end?",
    ),
    Mistake(
        "prune_one_too_few",
        "",
        "One head too few goes",
        "The budget is how many are kept.",
        "When does the loop end?",
    ),
    Mistake(
        "prune_budget_removed",
        "",
        "The budget is taken for how many go",
        "The budget is how many are kept.",
        "Count those that are left.",
    ),
    Mistake(
        "prune_removed_returned",
        "",
        "The heads that go are returned",
        _WANTED,
        "The others.",
    ),
    Mistake(
        "prune_order_returned",
        "",
        "The order in which heads go is returned",
        _WANTED,
        "The others, in rising order.",
    ),
    Mistake(
        "prune_backwards",
        "",
        "The heads are in falling order",
        _WANTED,
        "sorted() puts them in order.",
    ),
    Mistake(
        "prune_mask_returned",
        "",
        "True and False are returned, not the numbers of heads",
        _WANTED,
        "The places where it is True.",
    ),
    Mistake(
        "prune_loss_returned",
        "",
        "The loss is returned, not the heads",
        _WANTED,
        "Return what is kept.",
    ),
    Mistake(
        "prune_counted_from_one",
        "",
        "Heads are counted from 1",
        "The first head is head 0, as everywhere in this course.",
        "range(n_heads).",
    ),
)
