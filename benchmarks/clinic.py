"""How well the clinic examines: `python benchmarks/clinic.py`, over the whole zoo.

Every specimen of benchmarks/zoo is examined for each seed, in float64 and float32
(pairs, of which there are many, by turns: each with every fourth seed). The seed draws
the specimen's weights and the probes. Found means: said to be not healthy. Named means:
exactly its mistakes were named, no other and none missing.

The aims: every single mistake found and named, 98 % of the pairs found, and no right
one accused. The exit status is 0 only if they hold. Seconds are those of the
processor, on one thread: those of seed 0 as in a new process, the others with what
examinations before have left in memory. A full run writes
benchmarks/results/clinic.json. With `--journal FILE` every outcome is kept as it comes:
stopped, and begun again with the same file, the run goes on where it was. After a
mending, `--again FILE` examines those that were not as they should be in that run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for _library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB_MAXIMUM"):
    os.environ[f"{_library}_NUM_THREADS"] = "1"
HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

import numpy as np  # noqa: E402
from zoo.everyone import everyone, kind_of  # noqa: E402
from zoo.journal import Journal, not_good  # noqa: E402
from zoo.specimen import Specimen  # noqa: E402
from zoo.tally import Outcome, holds, summary, tables  # noqa: E402

RESULTS = HERE / "results" / "clinic.json"
DTYPES = ("float64", "float32")
QUEUE = 4  # jobs handed out ahead for each process


@dataclass(frozen=True)
class Job:
    """One examination."""

    name: str
    seed: int
    dtype: str
    alone: bool = False  # as in a new process: nothing is remembered


def as_named(said: Any, specimen: Specimen) -> tuple[str, ...]:
    """The codes that were said.

    Where two mistakes have the same effect at the sizes of a specimen (d_k and
    sqrt(d_model), say), the report gives both readings, and either counts.
    """
    named = tuple(sorted(said.codes))
    meant = tuple(sorted(specimen.codes))
    others = [note for note in said.untested if "could as well be" in note]
    if named != meant and any(all(code in note for code in meant) for note in others):
        return meant
    return named


def examined(specimen: Specimen, seed: int, dtype: str, alone: bool = False) -> Outcome:
    """Make the specimen, examine it, and compare with what it is."""
    from attnlib.clinic import examine
    from attnlib.clinic.black_box import remembered

    if alone:
        remembered.forget(0)
    rng = np.random.default_rng([seed, zlib.crc32(specimen.name.encode())])
    attention = specimen.make(rng, dtype)
    start = time.process_time()
    said, error = None, ""
    try:
        said = examine(attention, seed=seed, **specimen.intent)
    except Exception as raised:  # an examination never raises: that is a failure, too
        error = f"{type(raised).__name__}: {raised}"
    seconds = time.process_time() - start
    return Outcome(
        name=specimen.name,
        kind=kind_of(specimen),
        codes=tuple(sorted(specimen.codes)),
        seed=seed,
        dtype=dtype,
        healthy=said is not None and said.healthy,
        named=() if said is None else as_named(said, specimen),
        unknown="" if said is None or said.unknown is None else said.unknown.law,
        refused=error or ("" if said is None else said.refused),
        seconds=seconds,
        alone=alone,
    )


_zoo: dict[str, Specimen] = {}


def _prepare() -> None:
    """In each process: one thread, the zoo, and Ctrl-C left to the parent."""
    if multiprocessing.parent_process() is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    import torch

    torch.set_num_threads(1)
    _zoo.update((specimen.name, specimen) for specimen in everyone())


def _work(job: Job) -> Outcome:
    return examined(_zoo[job.name], job.seed, job.dtype, job.alone)


def outcomes(jobs: Sequence[Job], processes: int) -> Iterator[Outcome]:
    """The outcome of every job, as they come."""
    if processes == 1:
        _prepare()
        yield from map(_work, jobs)
        return
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_prepare
    )
    try:
        rest, running = iter(jobs), set()
        while True:
            while len(running) < QUEUE * processes:
                job = next(rest, None)
                if job is None:
                    break
                running.add(pool.submit(_work, job))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class Progress:
    """One line on a terminal, a line every half minute elsewhere."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.last = total, 0, 0.0
        self.start = time.monotonic()
        self.live = sys.stderr.isatty()

    def step(self) -> None:
        self.done += 1
        now = time.monotonic()
        every = 0.5 if self.live else 30.0
        if now - self.last < every and self.done < self.total:
            return
        self.last = now
        left = (now - self.start) / self.done * (self.total - self.done)
        minutes, seconds = divmod(round(left), 60)
        text = f"{self.done} of {self.total} examined, {minutes}:{seconds:02} to go"
        print(
            f"\r{text}   " if self.live else text,
            end="" if self.live and self.done < self.total else "\n",
            file=sys.stderr,
            flush=True,
        )


def jobs_for(
    specimens: Sequence[Specimen], seeds: int, quick: bool, turns: int = 1
) -> list[Job]:
    """Every specimen with every seed in both types; by turns if it must be quick.

    There are so many pairs that each of them has its turn with every `turns`-th seed.
    """
    if quick:
        return [Job(s.name, 0, DTYPES[i % 2], True) for i, s in enumerate(specimens)]
    return [
        Job(specimen.name, seed, dtype, alone=seed == 0)
        for seed in range(seeds)
        for dtype in DTYPES
        for i, specimen in enumerate(specimens)
        if kind_of(specimen) != "pairs" or (i + seed) % turns == 0
    ]


def whole_seeds(jobs: Sequence[Job], seen: Sequence[Outcome]) -> int:
    """How many seeds, from the first on, were gone through with every specimen."""
    done = {(outcome.name, outcome.seed, outcome.dtype) for outcome in seen}
    missing = (j.seed for j in jobs if (j.name, j.seed, j.dtype) not in done)
    return min(missing, default=max(job.seed for job in jobs) + 1)


def chosen(only: str, kind: str) -> list[Specimen]:
    """The specimens with a code, or a part of a name, of a kind."""
    wanted = only.casefold()
    return [
        specimen
        for specimen in everyone()
        if kind in ("", kind_of(specimen))
        and (
            not wanted
            or wanted.upper() in specimen.codes
            or wanted in specimen.name.casefold()
        )
    ]


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="how many (20)")
    parser.add_argument("-j", type=int, default=2, dest="processes", metavar="N")
    parser.add_argument("--only", default="", help="a code (M02), or a part of a name")
    kinds = ("singles", "pairs", "right")
    parser.add_argument("--kind", default="", choices=kinds)
    parser.add_argument(
        "--turns",
        type=int,
        default=4,
        metavar="N",
        help="each pair with every N-th seed (4); 1: with all, in many hours",
    )
    parser.add_argument("--quick", action="store_true", help="one seed, types by turns")
    parser.add_argument("--out", type=Path, help="write the numbers there as JSON")
    parser.add_argument(
        "--journal", type=Path, metavar="FILE", help="keep outcomes there, and go on"
    )
    parser.add_argument(
        "--again", type=Path, metavar="FILE", help="only what failed in this journal"
    )
    given = parser.parse_args(arguments)
    if min(given.seeds, given.processes, given.turns) < 1:
        parser.error("--seeds, --turns and -j want a number of at least 1")
    return given


def main(arguments: Sequence[str] | None = None) -> int:
    given = options(arguments)
    specimens = chosen(given.only, given.kind)
    try:
        failed = None if given.again is None else not_good(given.again)
    except (OSError, ValueError, TypeError) as error:
        print(f"{given.again} is no journal: {error}.", file=sys.stderr)
        return 2
    if failed is not None:
        specimens = [specimen for specimen in specimens if specimen.name in failed]
    if not specimens:
        print("no specimen of the zoo is like that.", file=sys.stderr)
        return 2
    jobs = jobs_for(specimens, given.seeds, given.quick, given.turns)
    print(f"{len(specimens)} specimens, {len(jobs)} examinations.", flush=True)
    try:
        journal = Journal(given.journal)
    except (OSError, ValueError) as error:
        print(f"the journal: {error}", file=sys.stderr)
        return 2
    seen = journal.of((job.name, job.seed, job.dtype) for job in jobs)
    done = {(outcome.name, outcome.seed, outcome.dtype) for outcome in seen}
    left = [job for job in jobs if (job.name, job.seed, job.dtype) not in done]
    if seen:
        print(f"{len(seen)} of them stand in {given.journal}.", flush=True)
    progress = Progress(len(left))
    with contextlib.closing(outcomes(left, given.processes)) as stream:
        try:
            for outcome in stream:
                journal.add(outcome)
                seen.append(outcome)
                progress.step()
        except KeyboardInterrupt:
            print(f"\nstopped; {len(seen)} of {len(jobs)} were examined.")
    stopped = len(seen) < len(jobs)
    seeds = 1 if given.quick else whole_seeds(jobs, seen)
    if stopped:  # a seed that was gone through in part would favour some specimens
        seen = [outcome for outcome in seen if outcome.seed < seeds]
    print("\n".join(tables(seen)))
    whole = not (given.only or given.kind or given.quick or given.again)
    target = given.out or (RESULTS if whole and not stopped else None)
    if target is not None and seen:
        told = {"seeds": seeds, "types": list(DTYPES), "turns of pairs": given.turns}
        write(target, told | summary(seen))
    return 130 if stopped else 0 if holds(seen) else 1


def write(path: Path, numbers: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(numbers, indent=1, sort_keys=True) + "\n")
    print(f"written: {path}")


if __name__ == "__main__":
    sys.exit(main())
