"""`feedback/<student>.html`: what a student is told. Kind, and without the answer."""

from __future__ import annotations

from collections.abc import Iterator

from attnlib.clinic import catalogue
from attnlib.grading.class_of import Class, Whole, lesson_of
from attnlib.grading.grades import Grade, Graded, shown
from attnlib.grading.page import inline, page, prose, safe

UNGRADED = (
    "This could not be graded, through no fault of yours. It counts neither for you "
    "nor against you; your teacher knows."
)
UNREADABLE = (
    "Your file could not be read, so nothing in it was graded. That is no zero: hand "
    "it in again, or show it to your teacher."
)
NOTHING = "There is nothing of yours to grade yet. That is no zero."
NO_LESSON = (
    "Nothing of lesson {:02} is here: it was not handed in, or could not be read. If "
    "you did hand it in, tell your teacher."
)
NOT_ASKED = "The class was not asked for this lesson: it is in no sum of points."
STATES = {
    "passed": ("good", "Passed"),
    "not started": ("soft", "Not started yet"),
    "missing": ("soft", "Not found"),
    "ungraded": ("soft", "Not graded"),
}
MORE = (
    'If you are stuck: `hint("{}")` in a new cell of the notebook gives one hint after '
    "another."
)


def content(student: Whole, all_: Class) -> bytes:
    """The page of one student."""
    name = all_.person(student.student).name or student.student
    return page(f"{all_.title}: {name}", _body(student, name, all_))


def _body(student: Whole, name: str, all_: Class) -> Iterator[str]:
    yield f'<p class="soft">{safe(all_.title)}</p>'
    yield f"<h1>{safe(name)}</h1>"
    if student.has_grades:
        yield (
            f'<p class="points"><b>{shown(student.points)}</b> of '
            f"{shown(student.of)} points</p>"
        )
        yield f"<p>{greeting(student)}</p>"
    for file in student.files:
        yield from _file(file)
        if file.grades and all_.worth.keys().isdisjoint(
            g.exercise for g in file.grades
        ):
            yield f'<p class="soft">{NOT_ASKED}</p>'
    for number in all_.lessons() if student.is_graded else ():
        if not student.of_lesson(number):
            yield f'<p class="soft">{NO_LESSON.format(number)}</p>'
    still = next((grade.exercise for grade in student.grades if _open(grade)), "")
    if still:
        yield f'<p class="soft">{inline(MORE.format(still))}</p>'


def greeting(student: Whole) -> str:
    """The first sentence: what stands, and where to go on."""
    counted = [grade for grade in student.grades if grade.counts]
    passed = sum(grade.status == "passed" for grade in counted)
    n = len(counted)
    if passed == n:
        return "Everything is right. Well done."
    if all(grade.status == "missing" for grade in counted):
        return "None of the exercises is in this file. Is it the right one?"
    begun = [g for g in counted if g.status not in ("not started", "missing")]
    if not begun:
        return "Nothing is begun yet. Each exercise below can be done on its own."
    if passed * 2 >= n:
        left = "one is" if n - passed == 1 else f"{n - passed} are"
        return f"{passed} of {n} are right. Well done; {left} left."
    if passed:
        are = "is" if passed == 1 else "are"
        return f"{passed} of {n} {are} right. Below is where the others can go on."
    return "You have begun. Below is what to look at, one exercise after another."


def _file(file: Graded) -> Iterator[str]:
    numbers = {lesson_of(grade) for grade in file.grades}
    lesson = numbers.pop() if len(numbers) == 1 else None
    if lesson is not None:
        yield f'<h2 class="part">Lesson {lesson:02}</h2>'
    if file.where:  # what lies around it is the teacher's archive, or the system's
        name = file.where.rsplit("/", 1)[-1]
        yield f'<p class="soft">Your file: {safe(name)}</p>'
    if file.status == "unreadable":
        yield f"<section>\n<p>{UNREADABLE}</p>\n{prose(file.problem)}\n</section>"
    elif file.status == "missing":
        yield f"<section>\n<p>{NOTHING}</p>\n{prose(file.problem)}\n</section>"
    for grade in file.grades:
        yield "\n".join(["<section>", *_grade(grade), "</section>"])


def _open(grade: Grade) -> bool:
    return grade.counts and grade.status != "passed"


def _grade(grade: Grade) -> Iterator[str]:
    kind, state = STATES.get(grade.status, ("some", "Not yet"))
    points = f"of {shown(grade.of)} points"
    if grade.counts:
        points = f"<b>{shown(grade.points)}</b> {points}"
    yield (
        f'<div class="top"><h3><code>{safe(grade.exercise)}</code></h3>'
        f'<span class="points">{points}</span></div>'
    )
    yield f'<p class="state {kind}">{state}{_place(grade)}</p>'
    if not grade.counts:
        yield f"<p>{UNGRADED}</p>"
        return
    if grade.points and grade.status != "passed":
        yield "<p>Part of it is right, and counts.</p>"
    said = prose(_without_name(grade))
    for name in map(named, grade.mistakes):
        marked = f"<b>{inline(name)}</b>"
        if inline(name) in said:
            said = said.replace(inline(name), marked, 1)
        else:
            yield f"<p>The mistake: {marked}.</p>"
    yield said
    for note in grade.notes:
        if note not in grade.text:
            yield f'<p class="soft">{inline(note)}</p>'
    if grade.further:
        yield f'<p class="hint"><b>A hint.</b> {inline(grade.further)}</p>'


def _place(grade: Grade) -> str:
    """Where the answer stands, and, while there is something to mend, how it begins.

    JupyterLab shows no such numbers. Of a cell with a syntax error the text has the
    broken line.
    """
    if not grade.cell:
        return ""
    begins = grade.begins if grade.status not in ("passed", "syntax") else ""
    where = inline(f" · cell {grade.cell} from the top{begins}")
    return f'<span class="soft">{where}</span>'


def _without_name(grade: Grade) -> str:
    """What `check` says, without what stands above it already."""
    text = grade.text.removeprefix(f"{grade.exercise}: ")
    for begin in ("not yet. ", "passed. ", "not started yet. "):
        text = text.removeprefix(begin)
    return text[:1].upper() + text[1:]


def named(key: str) -> str:
    """A mistake by its name; one that the course does not know, by its key."""
    mistake = catalogue.catalogue().get(key)
    return mistake.name if mistake else key
