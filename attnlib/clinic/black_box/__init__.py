"""Examine an attention from outside: only its outputs are seen.

`core` and `projected` are attention with every mistake built in, `search` finds the
mistakes that give just these outputs, `xray` reads weights and numbers off the
outputs, and the exams put the questions in their order.
"""
