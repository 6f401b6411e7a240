"""Become another program that ends when the one that started it ends.

    python follow.py PROGRAM [arguments]

On Linux the kernel sends it SIGTERM then, also where its parent was killed and could
tell nobody. So the hub follows the command that started it, and the proxy and the
students' servers follow the hub. Other systems have no such thing: there they end with
the hub when it ends in order.
"""

import ctypes
import os
import signal
import sys

SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <sys/prctl.h>; it survives exec

if __name__ == "__main__":
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0)
    os.execvp(sys.argv[1], sys.argv[1:])
