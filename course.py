"""The commands of the course. Each makes .venv and fills it by itself when needed.

    python course.py lab [options of jupyter lab]     open the lessons in JupyterLab
    python course.py models [--list or --remove]      real models, optional, 250 MB
    python course.py test [options of pytest]         run every test
    python course.py notebooks [options]              rebuild the changed notebooks
    python course.py check                            ruff, formatting and mypy
    python course.py bench [names] [options]          timed comparisons
    python course.py classroom [options]              a JupyterHub, for trial

Needs Python 3.11 to 3.14 and nothing else. To start afresh, delete .venv.
"""

# This file is a door that every Python since 2.7 can parse, so that an old one gets
# far enough to say the sentence below. What it opens is in tools/commands.py.
import sys

OLDEST, NEWEST = (3, 11), (3, 14)


def python_error(version):
    """The sentence for a Python that cannot run the course, or None."""
    if OLDEST <= tuple(version[:2]) <= NEWEST:
        return None
    return (
        "course.py: the course needs Python 3.11, 3.12, 3.13 or 3.14, and this is "
        + "Python {}.{}: ".format(*version[:2])
        + "run it with another one, for example `python3.11 course.py lab`."
    )


if __name__ == "__main__":
    if python_error(sys.version_info):
        sys.exit(python_error(sys.version_info))
    from tools.commands import main

    sys.exit(main(sys.argv[1:], __doc__))
