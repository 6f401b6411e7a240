"""Grade a class: read notebooks, run answers in a sandbox, judge them from outside.

The parent judges with the judge of the notebooks. The student's function is a remote
one: what it is called with goes to a process in a sandbox, and plain numbers come back.
"""
