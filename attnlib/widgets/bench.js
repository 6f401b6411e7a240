// A workbench: the tables of the page become editable, the kernel computes the rest.
const PATIENCE = 6000; // milliseconds until we say that the kernel does not answer

const SILENT = "The kernel does not answer. If it is not busy, run this cell again.";

function make(tag, attributes, text) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  if (tag === "button" || tag === "input")
    element.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab would eat keys
  return element;
}

// Words may repeat; spoken names may not: cat, chases, chases (2).
function numbered(labels) {
  return labels.map((label, at) => {
    const nth = labels.slice(0, at + 1).filter((other) => other === label).length;
    return nth > 1 ? `${label} (${nth})` : label;
  });
}

// Lab may draw an output again while someone edits it: what was edited must stay.
const edited = new WeakMap(); // model -> the newest good values of every input

function begin(root, model) {
  const spec = model.get("spec");
  root.classList.add("attn-bench");
  root.querySelector(".attn-off").remove();
  const tables = (part) => [...root.querySelectorAll(`.${part} table`)];
  const results = Object.fromEntries(
    spec.outputs.map((name, at) => [name, tables("attn-out")[at]]),
  );
  const again = edited.has(model);
  const state = edited.get(model) || {};
  edited.set(model, state);
  const controls = {};
  const say = make("p", { class: "attn-say", "aria-live": "polite" });
  const bad = make("p", { class: "attn-bad", role: "alert" });
  const isWord = (text) => Object.values(WORDS).includes(text);
  const firstWords = Object.fromEntries(Object.entries(results).map(([name, table]) => [name,
    [...table.tBodies[0].querySelectorAll("td")].map((cell) => isWord(cell.textContent))]));

  // --- talking to the kernel: one question at a time, always the newest state
  const me = Math.random().toString(36).slice(2);
  let count = 0, seen = 0, waiting = null, dirty = false, timer = null;
  const ask = () => {
    if (waiting) { dirty = true; return; }
    dirty = false;
    waiting = `${me}-${++count}`;
    timer = setTimeout(() => {
      waiting = null;
      bad.textContent = SILENT;
      if (root.isConnected) ask(); // a question that was lost is asked again
    }, PATIENCE);
    model.send({ kind: "edit", id: waiting, inputs: state });
  };
  const onReply = (reply) => {
    if (!reply || reply.kind !== "reply") return;
    const [who, number] = String(reply.id).split("-");
    if (who !== me || Number(number) <= seen) return;
    seen = Number(number); // a slow kernel may answer the question before the last
    if (reply.id === waiting) { clearTimeout(timer); waiting = null; }
    if (reply.error) bad.textContent = `${reply.error} The tables still show the last good state.`;
    else {
      if (!anyInvalid()) bad.textContent = warning(reply.results);
      for (const [name, values] of Object.entries(reply.results)) {
        results[name].dataset.maximum = reply.maxima[name];
        paint(results[name], { v: values, changed: true });
      }
    }
    root.dataset.replies = String(Number(root.dataset.replies || 0) + 1);
    if (dirty && !waiting) ask();
  };
  model.on("msg:custom", onReply);

  // A mask may put -∞ into a table; where all inputs are numbers, only size does.
  function warning(found) {
    if (spec.inputs.some((input) => input.kind === "bool")) return "";
    const lost = Object.keys(found).filter((name) => found[name].some((value, at) =>
      typeof value === "string" && !firstWords[name][at]));
    if (!lost.length) return "";
    const what = lost.some((name) => name.includes("scores")) ? "scores" : "numbers";
    return `A number became infinite or NaN: the ${what} are too large.`;
  }

  const anyInvalid = () => root.querySelector('[aria-invalid="true"]');
  const changed = () => { refresh(); ask(); };

  // --- inputs
  spec.inputs.forEach((input, which) => {
    const table = tables("attn-in")[which];
    const width = table.tBodies[0].rows[0].cells.length - 1;
    const columns = [...table.tHead.rows[0].cells].slice(1).map((c) => c.textContent);
    const rows = [...table.tBodies[0].rows].map((r) => r.cells[0].textContent);
    const [called, under] = [numbered(rows), numbered(columns)];
    const list = [];
    controls[input.name] = { input, table, rows, columns, called, under, width, list };
    state[input.name] = state[input.name] || [...input.values];
    [...table.tBodies[0].querySelectorAll("td")].forEach((cell, at) => {
      const name = `${input.name}, row ${called[Math.floor(at / width)]}, column ${under[at % width]}`;
      cell.className = "attn-edit";
      cell.textContent = "";
      const control = input.kind === "bool" ? toggle(input.name, at, name) : entry(input.name, at, name);
      list.push(control);
      cell.append(control);
    });
    if (input.kind === "bool") rove(list, width);
    if (spec.watch === input.name) {
      [...table.tBodies[0].rows].forEach((row, i) => {
        const button = make("button", { type: "button", "aria-pressed": "false",
          "aria-label": `show what ${called[i]} sees` }, rows[i]);
        button.addEventListener("click", () => { chosen = chosen === i ? null : i; refresh(); });
        row.cells[0].replaceChildren(button);
      });
    }
  });

  function entry(name, at, label) {
    const box = make("input", { type: "number", step: "0.1", "aria-label": label });
    box.value = state[name][at];
    // The wheel would change the number in focus; it is to scroll the page.
    box.addEventListener("wheel", () => box.blur(), { passive: true });
    box.addEventListener("input", () => {
      const value = box.value.trim() === "" ? NaN : Number(box.value);
      const good = Number.isFinite(value) && !box.validity.badInput;
      if (good) box.removeAttribute("aria-invalid");
      else box.setAttribute("aria-invalid", "true");
      if (!good) {
        bad.textContent = `${label}: this is no finite number. The tables still show the last good state.`;
        return;
      }
      if (!anyInvalid()) bad.textContent = "";
      state[name][at] = value;
      changed();
    });
    return box;
  }

  function toggle(name, at, label) {
    const button = make("button", { type: "button", "aria-label": label });
    button.addEventListener("click", () => {
      state[name][at] = state[name][at] ? 0 : 1;
      changed();
    });
    return button;
  }

  // One Tab stop for a grid of toggles; arrows, Home and End walk in it.
  function rove(list, width) {
    list.forEach((button, at) => {
      button.tabIndex = at ? -1 : 0;
      button.addEventListener("keydown", (event) => {
        const row = at - (at % width);
        const to = { ArrowRight: Math.min(at + 1, row + width - 1), ArrowLeft: Math.max(at - 1, row),
          ArrowDown: at + width < list.length ? at + width : at, ArrowUp: at >= width ? at - width : at,
          Home: row, End: row + width - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        list[to].focus();
      });
      button.addEventListener("focus", () => list.forEach((b) => (b.tabIndex = b === button ? 0 : -1)));
    });
  }

  // --- what the page shows of the inputs: toggles, presets, the chosen row
  let chosen = null;
  const tools = make("div", { class: "attn-tools", role: "group", "aria-label": "start from" });
  const presets = Object.entries(spec.presets).map(([label, values]) => {
    const button = make("button", { type: "button", "aria-pressed": "false" }, label);
    button.addEventListener("click", () => load(values));
    tools.append(button);
    return [button, values];
  });
  const reset = make("button", { type: "button" }, "Reset");
  reset.addEventListener("click", () =>
    load(Object.fromEntries(spec.inputs.map((input) => [input.name, input.values]))));
  tools.append(reset);

  function load(values) {
    for (const [name, list] of Object.entries(values)) {
      state[name] = [...list];
      const { input, list: cells } = controls[name];
      if (input.kind === "number")
        cells.forEach((box, at) => { box.value = list[at]; box.removeAttribute("aria-invalid"); });
    }
    bad.textContent = "";
    changed();
  }

  function refresh() {
    for (const { input, list } of Object.values(controls)) {
      if (input.kind !== "bool") continue;
      list.forEach((button, at) => {
        button.setAttribute("aria-pressed", String(Boolean(state[input.name][at])));
        button.textContent = state[input.name][at] ? "✓" : "×";
      });
    }
    for (const [button, values] of presets) {
      const same = Object.entries(values).every(([name, list]) =>
        list.every((value, at) => value === state[name][at]));
      button.setAttribute("aria-pressed", String(same));
    }
    if (spec.watch) light();
  }

  function light() {
    const { rows, columns, called, under, width, table } = controls[spec.watch];
    [...table.tBodies[0].rows].forEach((row, i) =>
      row.cells[0].firstElementChild.setAttribute("aria-pressed", String(i === chosen)));
    const seen = columns.map((_, j) => chosen !== null && Boolean(state[spec.watch][chosen * width + j]));
    for (const each of [table, ...Object.values(results)]) {
      const body = each.tBodies[0].rows;
      if (body.length === rows.length)
        [...body].forEach((row, i) => row.classList.toggle("attn-row", i === chosen));
      const heads = [...each.tHead.rows[0].cells].slice(1);
      if (heads.length === width && heads.every((h, j) => h.textContent === columns[j]))
        heads.forEach((head, j) => head.classList.toggle("attn-seen", seen[j]));
    }
    if (chosen === null) say.textContent = "Choose a row to see what it looks at.";
    else {
      const names = under.filter((_, j) => seen[j]);
      say.textContent = names.length
        ? `${called[chosen]} looks at ${names.join(", ")}.`
        : `${called[chosen]} may look at nothing: its weights and its output are zeros.`;
    }
  }

  root.querySelector(".attn-in").before(tools);
  root.querySelector(".attn-in").after(say, bad);
  const toggles = spec.inputs.every((input) => input.kind === "bool");
  const todo = toggles ? "Press ✓ or ×" : "Edit a number";
  if (!spec.watch) say.textContent = `${todo}: what changed is underlined.`;
  refresh();
  root.dataset.ready = "yes";
  if (again) ask();
  return () => { clearTimeout(timer); model.off("msg:custom", onReply); };
}

// A saved widget cannot be shown again without its kernel: Lab would write "model not
// found". So in Lab the kernel replaces the widget by plain HTML, which saves and opens
// as tables, and whose script finds the living model here.
function render({ model, el }) {
  el.innerHTML = model.get("page");
  const stop = begin(el.querySelector(".attn"), model);
  window.attnlibBenches = window.attnlibBenches || new Map();
  window.attnlibBenches.set(model.get("key"), (root) => begin(root, model));
  if (document.body.dataset.jpThemeName !== undefined) model.send({ kind: "drawn" });
  return stop;
}

export default { render };
