"""Run inside the kernel of a tested lesson: no network, and no torch where none is due.

The gate sends this text to the kernel before the first cell. An audit hook sees every
connection and look-up that Python makes, whoever asks for it; the kernel itself talks
through ZeroMQ, in C, and is not seen. Each attempt is refused with an error and
written to a file, so that a lesson which swallows the error is still found out.
"""


def guard(record: str, *, no_torch: bool) -> None:
    import ipaddress
    import os
    import sys

    network = {
        "socket.connect",
        "socket.sendto",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "urllib.Request",
        "http.client.connect",
    }

    def own_pair(event: str, arguments: tuple) -> bool:
        # Windows has no socketpair: an event loop connects to itself instead.
        try:
            return os.name == "nt" and ipaddress.ip_address(arguments[1][0]).is_loopback
        except (IndexError, TypeError, ValueError):
            return False

    def hook(event: str, arguments: tuple) -> None:
        if event in network and not own_pair(event, arguments):
            shown = (
                arguments[1:]
                if event in ("socket.connect", "socket.sendto")
                else arguments
            )
            fault = f"{event} {shown}"
        elif no_torch and event == "import" and arguments[0] == "torch":
            fault = "import torch, in a lesson of the NumPy half"
        else:
            return
        line = f"{fault}\n".encode()
        file = os.open(record, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, line)
        os.close(file)
        raise RuntimeError(f"A lesson works offline and light; refused: {fault}")

    sys.addaudithook(hook)
