"""Prints and raises HTML, with a script in it."""


def answer(*args):
    words = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    print(words)
    raise type(words, (ValueError,), {})(words)
