"""What runs in the sandbox: the standard library, NumPy, and torch where it is needed.

Nothing here knows the answers, the seed, or any other student. `supervisor` starts one
child for each exercise, `student` runs in that child.
"""
