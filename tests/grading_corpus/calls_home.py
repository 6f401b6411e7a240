"""Connects to a server, and answers."""

import socket


def answer(*args):
    for address in (("127.0.0.1", int("@PORT@")), ("192.0.2.1", 80)):
        try:
            with socket.create_connection(address, timeout=0.05) as line:
                line.send(b"CALLED HOME")
        except OSError:
            pass
    return right(*args)
