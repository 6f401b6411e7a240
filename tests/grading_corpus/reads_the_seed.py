"""Opens the seed file, whose place it knows, and tells what it says."""


def answer(*args):
    with open("@SEED@") as file:
        said = file.read()
    raise ValueError(said)
