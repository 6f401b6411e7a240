"""Calls at a help desk: long texts in which what matters lies near, but for one thing.

Someone says from which room the call comes, then one request follows the other without
a stop, and at the end the desk asks for the room.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlib.nn.intents import DESK, WHICH_ROOM, HelpDesk
from attnlib.shapes import ShapeError, size

N_ROOMS = 8
NO_ANSWER = -100  # what torch's cross_entropy leaves out


@dataclass(frozen=True)
class Calls:
    """Long texts: a room, requests, and the question which room it was."""

    ids: Tensor  #     (batch, n)
    answers: Tensor  # (batch, n) each token's intent; -100 where it has none
    rooms: Tensor  #   (batch,) from 0


def draw_calls(
    desk: HelpDesk, batch: int, n: int, generator: torch.Generator, *, test: bool
) -> Calls:
    """Draw calls: a room, requests without a stop between them, and a question.

    <desk> this is the kitchen  lock the front door  next track  ... <which room>

    Each token of a request has the request's intent as its answer, <which room> the
    room. The last request is cut off where the text is full.

    Args:
        desk: from `help_desk`.
        batch: how many calls.
        n: how many tokens each has, at least 16.
        generator: where they are drawn from.
        test: take the requests from `desk.unseen`.

    Returns:
        ids and answers (batch, n), rooms (batch,).

    Raises:
        ShapeError: n is smaller than 16.
        TypeError: a size is not a whole number.

    Cost: about batch n / 7 random numbers.
    Source: the names of the course.
    Lesson: 15.

    >>> from attnlib.nn.intents import help_desk
    >>> desk, luck = help_desk("en"), torch.Generator().manual_seed(1)
    >>> calls = draw_calls(desk, 2, 16, luck, test=False)
    >>> calls.ids.shape, calls.answers[0, 0].item(), calls.ids[0, -1].item()
    (torch.Size([2, 16]), -100, 3)
    """
    batch, n = size("batch", batch), size("n", n)
    if n < 16:
        raise ShapeError(f"n={n} tokens are too few for a call; at least 16.")
    part = desk.unseen if test else desk.known
    lengths = part.real.sum(1)

    def number(below: int) -> int:
        return int(torch.randint(below, (), generator=generator))

    ids = torch.full((batch, n), WHICH_ROOM)
    answers = torch.full((batch, n), NO_ANSWER)
    rooms = torch.randint(N_ROOMS, (batch,), generator=generator)
    for i, room in enumerate(rooms.tolist()):
        openings = desk.openings[room]
        first = [DESK, *openings[number(len(openings))]]
        ids[i, : len(first)] = torch.tensor(first)
        at = len(first)
        while at < n - 1:
            row = number(len(part.ids))
            stop = min(n - 1, at + int(lengths[row]))
            ids[i, at:stop] = part.ids[row, : stop - at]
            answers[i, at:stop] = part.answers[row]
            at = stop
    return Calls(ids, answers, rooms)
