"""The example of the course: 猫 追逐 老鼠, cat chases mouse, by hand in lesson 01.

The four numbers of a token were chosen by us, to be read by a person: how much it is
an animal, an action, a hunter, something hunted. In a trained model nobody chooses
them. The embeddings have full rank, so that no score table is ruled out beforehand,
and all sizes differ: 3 tokens, d_model 4, d_k 2, d_v 5.
"""

import numpy as np

TOKENS = ("猫", "追逐", "老鼠")
TOKENS_EN = ("cat", "chases", "mouse")
FEATURES = ("animal", "action", "hunter", "hunted")

X = np.array(  # (3 tokens, d_model=4)
    [
        [1.0, 0.1, 0.8, 0.2],
        [0.0, 1.0, 0.4, 0.3],
        [0.9, 0.2, 0.1, 0.7],
    ]
)
W_q = np.array(  # (d_model=4, d_k=2)
    [
        [0.2, 1.0],
        [2.0, 0.3],
        [0.5, -0.6],
        [-0.4, 0.9],
    ]
)
W_k = np.array(  # (d_model=4, d_k=2)
    [
        [0.8, 0.4],
        [-0.7, 0.9],
        [1.5, -0.2],
        [0.3, 1.2],
    ]
)
W_v = np.array(  # (d_model=4, d_v=5)
    [
        [1.0, 0.0, 0.2, 0.0, 0.5],
        [0.0, 1.0, 0.0, 0.3, 0.0],
        [0.6, 0.0, 1.0, 0.0, -0.4],
        [0.0, 0.2, 0.0, 1.0, 0.7],
    ]
)
for _array in (X, W_q, W_k, W_v):
    _array.flags.writeable = False  # a lesson that changes them copies them first
del _array
