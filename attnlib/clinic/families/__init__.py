"""One wrong-able implementation for each function of the course."""
