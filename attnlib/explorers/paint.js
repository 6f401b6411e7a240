// Repaints tables that attnlib.explorers.panels has drawn. cells.py has the same rules.
const WORDS = { nan: "NaN", inf: "∞", "-inf": "-∞" };

function shown(value, digits) {
  if (typeof value === "string") return WORDS[value];
  if (Math.abs(value) >= 1e5) return value.toExponential(2);
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text;
}

function share(value, maximum) {
  if (typeof value === "string" || !(maximum > 0)) return 0;
  return Math.min(1, Math.max(0, value / maximum));
}

// Returns the text and the look of one cell.
function look(value, digits, colour, maximum) {
  if (colour === "mask") return value ? ["✓", "p", 0.5] : ["×", "o", 0];
  const text = shown(value, digits);
  if (typeof value === "string") return [text, "o", 0];
  const a = colour === "none" ? 0 : share(Math.abs(value), maximum);
  return [text, colour === "signed" && value < 0 ? "n" : "p", a];
}

function paintMatrix(table, panel) {
  const { digits, colour, maximum } = table.dataset;
  const cells = table.tBodies[0].querySelectorAll("td");
  const marked = new Set(panel.m || []);
  panel.v.forEach((value, at) => {
    const [text, kind, a] = look(value, Number(digits), colour, Number(maximum));
    const cell = cells[at];
    const before = cell.textContent;
    if (before !== text) cell.textContent = text;
    if (colour !== "groups") {
      cell.classList.remove("p", "n", "o");
      cell.classList.add(kind);
      cell.style.setProperty("--a", a.toFixed(3));
    }
    cell.classList.toggle("k", marked.has(at));
    cell.classList.toggle("c", Boolean(panel.changed) && before !== text);
  });
}

function paintBars(table, panel) {
  const { digits, maximum } = table.dataset;
  [...table.tBodies[0].rows].forEach((row, at) => {
    const value = panel.v[at];
    const length = 100 * share(value, Number(maximum));
    row.cells[1].firstElementChild.style.width = `${length.toFixed(1)}%`;
    row.cells[2].textContent = shown(value, Number(digits));
  });
}

function paintHistogram(figure, panel) {
  const bins = figure.querySelector(".attn-bins");
  const bars = bins.querySelectorAll("span");
  panel.v.forEach((value, at) => {
    const height = 100 * share(value, Number(figure.dataset.maximum));
    bars[at].style.height = `${height.toFixed(1)}%`;
    bars[at].textContent = `${value} `; // not seen; it is copied with the figure
  });
  const ends = figure.querySelectorAll(".attn-ends span");
  panel.x.forEach((text, at) => (ends[at].textContent = text));
  const [low, high] = panel.x;
  const counts = panel.v.join(" ");
  const heard = `${panel.t}: from ${low} to ${high}, bins ${counts}`;
  bins.setAttribute("aria-label", heard);
}

function paint(element, panel) {
  const kind = element.dataset.kind;
  if (kind === "matrix") paintMatrix(element, panel);
  if (kind === "bars") paintBars(element, panel);
  if (kind === "histogram") paintHistogram(element, panel);
  const title = kind === "note" ? element : element.querySelector("caption, figcaption");
  if (panel.t !== undefined && title.textContent !== panel.t) title.textContent = panel.t;
}
