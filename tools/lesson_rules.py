"""The rules of a lesson that can be read off its notebook without a kernel."""


def broken_rules(lesson: str, stored: bytes) -> list[str]:
    return []
