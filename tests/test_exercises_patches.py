"""Lesson 07, patches: right answers in other styles, wrong ones, and what they hear."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnlib.exercises import judge
from attnlib.nn import canvases


def patches_by_loop(image, size):
    rows = []
    for top in range(0, image.shape[0], size):
        for left in range(0, image.shape[1], size):
            rows.append(image[top : top + size, left : left + size].flatten())
    return np.array(rows)


def patches_by_einsum(image, size):
    h, w = image.shape
    cut = image.reshape(h // size, size, w // size, size)
    return np.einsum("abcd->acbd", cut).reshape(-1, size**2)


def patches_by_split(image, size):
    h, w = image.shape
    rows = [np.hsplit(r, w // size) for r in np.vsplit(image, h // size)]
    return np.stack([p.reshape(-1) for r in rows for p in r])


def patches_by_windows(image, size):
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size))
    return windows[::size, ::size].reshape(-1, size * size)


def patches_by_index(image, size):
    h, w = image.shape
    p = np.arange(h * w // size**2)[:, None]
    i = np.arange(size**2)[None]
    across = w // size
    return image[p // across * size + i // size, p % across * size + i % size]


def patches_by_fill(image, size):
    h, w = image.shape
    rows, number = np.empty((h * w // size**2, size**2)), 0
    for i in range(h // size):
        for j in range(w // size):
            square = image[i * size : (i + 1) * size, j * size : (j + 1) * size]
            rows[number] = square.reshape(-1)
            number += 1
    return rows


def patches_by_unfold(image, size):
    picture = torch.tensor(image)[None, None]
    return torch.nn.functional.unfold(picture, size, stride=size)[0].T


def patches_in_a_list(image, size):
    return [row.tolist() for row in patches_by_fill(image, size)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "answer",
    [
        patches_by_fill,
        patches_by_unfold,
        patches_in_a_list,
        lambda image, size: canvases.patches(torch.tensor(image), size),
        patches_by_loop,
        patches_by_einsum,
        patches_by_split,
        patches_by_windows,
        patches_by_index,
        lambda image, size: patches_by_loop(image, size).astype("float32"),
    ],
)
def test_another_right_way_passes(answer, seed):
    verdict = judge("patches", answer, seed)
    assert verdict.passed, verdict.text


def cut(image, size):
    return image.reshape(image.shape[0] // size, size, image.shape[1] // size, size)


def counted(image, size):
    height, width = image.shape
    return image.reshape(size, height // size, size, width // size)


def order(*axes):
    return lambda image, size: cut(image, size).transpose(axes).reshape(-1, size**2)


WRONG_CUTS = [
    (lambda image, size: image.reshape(-1, size**2), "patches_not_moved", "M20"),
    (
        lambda image, size: cut(image, size).reshape(-1, size**2),
        "patches_not_moved",
        "M20",
    ),
    (
        lambda image, size: image.T.reshape(-1, size**2),
        "patches_columns_of_pixels",
        "M20",
    ),
    (order(2, 0, 1, 3), "patches_by_columns", ""),
    (order(0, 2, 3, 1), "patches_pixels_by_columns", ""),
    (lambda image, size: patches_by_loop(image.T, size), "patches_all_by_columns", ""),
    (order(1, 0, 2, 3), "patches_first_axes", "M20"),
    (order(0, 1, 3, 2), "patches_last_axes", "M20"),
    (order(2, 1, 0, 3), "patches_outer_axes", "M20"),
    (order(0, 3, 2, 1), "patches_inner_axes", "M20"),
    (order(1, 3, 0, 2), "patches_every_nth", "M22"),
    (
        lambda image, size: np.lib.stride_tricks.sliding_window_view(
            image, (size, size)
        ).reshape(-1, size**2),
        "patches_overlapping",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).reshape(-1, size, size),
        "patches_square",
        "",
    ),
    (
        lambda image, size: np.swapaxes(cut(image, size), 1, 2),
        "patches_four_axes",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).reshape(
            len(image) // size, -1, size**2
        ),
        "patches_in_a_grid",
        "",
    ),
    (lambda image, size: patches_by_loop(image, size).T, "patches_as_columns", ""),
    (order(3, 2, 1, 0), "patches_axes_reversed", "M20"),
    (
        lambda image, size: (
            counted(image, size).swapaxes(1, 2).reshape(-1, size * size)
        ),
        "patches_counted_in_the_cut",
        "",
    ),
    (
        lambda image, size: (
            counted(image, size).transpose(1, 3, 0, 2).reshape(-1, size * size)
        ),
        "patches_spread_out",
        "M22",
    ),
    (
        lambda image, size: (
            image.reshape(image.shape[1] // size, size, image.shape[0] // size, size)
            .swapaxes(1, 2)
            .reshape(-1, size * size)
        ),
        "patches_sides_swapped",
        "",
    ),
    (
        lambda image, size: np.array(
            [
                image[i : i + size, j : j + size].ravel()
                for i in range(image.shape[0] // size)
                for j in range(image.shape[1] // size)
            ]
        ),
        "patches_step_one",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).reshape(size * size, -1),
        "patches_joined_by_pixels",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).reshape(-1, size),
        "patches_below_each_other",
        "",
    ),
    (
        lambda image, size: patches_by_loop(image, size).mean(1, keepdims=True),
        "patches_means",
        "",
    ),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("answer", "key", "code"), WRONG_CUTS)
def test_a_wrong_cut_is_named(answer, key, code, seed):
    verdict = judge("patches", answer, seed)
    assert verdict.status == "mistake", verdict.text
    assert [(m.key, m.code) for m in verdict.mistakes] == [(key, code)]


@pytest.mark.parametrize(
    "answer",
    [
        lambda image, size: patches_by_loop(image, size)[::-1],
        lambda image, size: patches_by_loop(image[::-1], size),
        lambda image, size: patches_by_loop(image, size)[1:],
        lambda image, size: patches_by_loop(image[:, ::-1], size),
        lambda image, size: patches_by_loop(image, size) / 16,
        lambda image, size: patches_by_loop(image, size).astype(int),
        lambda image, size: patches_by_loop(image, 2),
        lambda image, size: patches_by_loop(image, 4),
        lambda image, size: patches_by_loop(image, size).sum(),
        lambda image, size: image.reshape(size, size, -1),
        lambda image, size: image.reshape(-1, 16),
        lambda image, size: cut(image, size).reshape(size, -1),
        lambda image, size: np.array(np.array_split(image, size)),
        lambda image, size: [],
    ],
)
def test_other_wrong_cuts_are_refused(answer):
    assert not judge("patches", answer).passed


def test_the_evidence_is_a_place():
    text = judge("patches", lambda image, size: image.reshape(-1, size**2)).text
    assert (
        "your patch 0 holds the pixels [0, 0], [0, 1], [0, 2], [0, 3]; right is" in text
    )
    assert "[0, 0], [0, 1], [1, 0], [1, 1] (4 x 6 pixels, size 2)" in text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            lambda image, size: np.array(
                [
                    image[i : i + size + 1, j : j + size + 1].ravel()
                    for i in range(0, image.shape[0], size)
                    for j in range(0, image.shape[1], size)
                ]
            ),
            "not equally large",
        ),
        (
            lambda image, size: np.swapaxes(
                image.reshape(4, size, 4, size), 1, 2
            ).reshape(16, -1),
            "differ from case to case",
        ),
        (
            lambda image, size: canvases.patches(image, size),
            "that of a tensor exchanges two",
        ),
    ],
)
def test_an_error_is_explained(answer, said):
    verdict = judge("patches", answer)
    assert verdict.status == "raised"
    assert said in verdict.text
