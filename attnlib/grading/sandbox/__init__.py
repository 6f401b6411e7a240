"""Places in which a stranger's code may run: bubblewrap, Landlock, or limits alone.

`choose` takes the best one that works here, found out by running it.
"""
