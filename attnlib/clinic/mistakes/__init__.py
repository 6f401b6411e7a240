"""What to tell a learner about each mistake, one file for each kind of function."""
