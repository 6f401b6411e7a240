"""What hands do with figures in a browser: every control is moved from the keyboard."""

from __future__ import annotations

from typing import Any

from browser import eventually

# What a slider changes: the panels of an explorer, the charts of the patient shown.
PICTURE = ".attn-panels, .attn-ward:not([hidden])"


def slide(page: Any, slider: Any) -> None:
    """Arrow keys, Home and End change the picture, and nothing else on the page."""
    assert slider.is_enabled()
    figure = slider.locator("xpath=ancestor::*[contains(@class, 'attn ')][1]")
    others = page.locator(PICTURE).all_text_contents()
    seen, last = {}, int(slider.get_attribute("max"))
    slider.focus()
    places = {"Home": 0, "ArrowRight": 1, "End": last, "ArrowLeft": last - 1}
    for key, at in places.items():
        page.keyboard.press(key)
        assert int(slider.input_value()) == at, f"{key} did not reach the slider"
        shown = figure.locator(PICTURE).inner_html()
        assert seen.setdefault(at, shown) == shown  # the same place, the same picture
        assert figure.locator("output").text_content()
    assert len(set(seen.values())) > 1
    now = page.locator(PICTURE).all_text_contents()
    assert sum(a != b for a, b in zip(others, now, strict=True)) <= 1


def choose(page: Any, select: Any) -> None:
    """Each choice shows charts of its own, and says whose they are."""
    assert select.is_enabled()
    figure = select.locator("xpath=ancestor::*[contains(@class, 'attn ')][1]")
    seen = []
    for name in select.locator("option").all_text_contents():
        select.select_option(name)
        shown = figure.locator(PICTURE)
        assert shown.count() == 1
        assert (shown.get_attribute("aria-label") or "").endswith(f" {name}")
        seen.append(shown.inner_html())
    assert len(set(seen)) == len(seen) > 1


def walk(page: Any, figure: Any) -> None:
    """The arrows move from cell to cell, and the note names where the element is."""
    cell = figure.locator('td[tabindex="0"]').first
    cell.focus()
    before = figure.locator(".attn-note").text_content()
    page.keyboard.press("ArrowRight")
    after = figure.locator(".attn-note").text_content()
    assert before != after
    assert figure.locator("td.k").count() >= 2
    figure.locator("tbody td").last.click()
    assert figure.locator(".attn-note").text_content() != after


def replies(bench: Any) -> int:
    return int(bench.get_attribute("data-replies") or 0)


def answered(page: Any, bench: Any, before: int) -> None:
    eventually(
        page,
        "the kernel answers",
        "([bench, before]) => Number(bench.dataset.replies || 0) > before",
        [bench.element_handle(), before],
    )


def work(page: Any, bench: Any) -> None:
    """Every cell can be edited from the keyboard, and the results follow."""
    results = bench.locator(".attn-out")
    first = results.text_content()
    for table in bench.locator(".attn-in table").all():
        pictures = {results.text_content()}
        for cell in table.locator("td > input, td > button").all():
            before = replies(bench)
            cell.focus()
            number = cell.get_attribute("type") == "number"
            page.keyboard.press("ArrowUp" if number else "Space")
            answered(page, bench, before)
            pictures.add(results.text_content())
        assert len(pictures) > 1, "no edit of this table changed a result"
    reset = bench.get_by_role("button", name="Reset")
    before = replies(bench)
    reset.press("Enter")
    answered(page, bench, before)
    assert results.text_content() == first
    for box in bench.locator("input[type=number]").all()[:1]:
        for entry in ("", "1e999"):
            box.fill(entry)
            assert box.get_attribute("aria-invalid") == "true"
            assert "no finite number" in bench.locator(".attn-bad").text_content()
            assert results.text_content() == first
        before = replies(bench)
        reset.press("Enter")
        answered(page, bench, before)
        assert bench.locator(".attn-bad").text_content() == ""
        before = replies(bench)
        box.fill("1e308")
        answered(page, bench, before)
        assert "infinite or NaN" in bench.locator(".attn-bad").text_content()
        assert max(map(len, bench.locator(".attn-out td").all_text_contents())) < 12
        before = replies(bench)
        reset.press("Enter")
        answered(page, bench, before)
        assert bench.locator(".attn-bad").text_content() == ""
        value = box.input_value()
        box.hover()
        box.focus()
        page.mouse.wheel(0, 100)
        page.wait_for_timeout(300)
        assert box.input_value() == value, "the wheel changed a number"
    for row in bench.locator("th > button").all():
        row.press("Enter")
        told = bench.locator(".attn-say").text_content()
        assert row.text_content() in told
        assert bench.locator("tr.attn-row").count() >= 2
    for preset in bench.locator(".attn-tools button").all()[:-1]:
        preset.press("Enter")
        assert preset.get_attribute("aria-pressed") == "true"


def faint_texts(figure: Any) -> list[str]:
    """Texts in cells whose colours are nearer than 4.5 : 1, as they are drawn."""
    found: list[str] = figure.evaluate(
        """figure => {
      const numbers = text => text.match(/[\\d.e+-]+/g).map(Number);
      const part = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
      const light = rgb => .2126 * part(rgb[0]) + .7152 * part(rgb[1])
        + .0722 * part(rgb[2]);
      const read = text => text.startsWith('color(')
        ? numbers(text.replace('color(srgb', '')) : numbers(text).map(v => v / 255);
      const bad = [];
      for (const cell of figure.querySelectorAll('.attn-m tbody td:not(.o)')) {
        const style = getComputedStyle(cell);
        const back = read(style.backgroundColor);
        if (!cell.textContent || cell.firstElementChild || back[3] < 1) continue;
        const [a, b] = [light(read(style.color)), light(back)];
        const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
        if (contrast < 4.5) bad.push(`${cell.textContent} ${contrast.toFixed(2)}`);
      }
      return bad;
    }"""
    )
    return found
