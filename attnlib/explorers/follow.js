// Choose a cell, see where its element stands in the other tables.
function start(root, data) {
  const note = root.querySelector(".attn-note");
  const tables = [...root.querySelectorAll("table")];
  const cells = tables.map((table) => [...table.tBodies[0].querySelectorAll("td")]);
  const width = (p) => tables[p].tBodies[0].rows[0].cells.length - 1;
  const place = (p, at) =>
    `${data.names[p]}[${Math.floor(at / width(p))}, ${at % width(p)}]`;

  const choose = (p, at) => {
    const id = data.ids[p][at];
    const places = [];
    cells.forEach((list, other) =>
      list.forEach((cell, i) => {
        const same = data.ids[other][i] === id;
        cell.classList.toggle("k", same);
        if (same) cell.setAttribute("aria-current", "true");
        else cell.removeAttribute("aria-current");
        cell.tabIndex = other === p && i === at ? 0 : -1;
        if (same && !(other === p && i === at)) places.push(place(other, i));
      }),
    );
    // Each table keeps one cell that Tab can reach.
    cells.forEach((list, other) => {
      if (other === p) return;
      const at = data.ids[other].indexOf(id);
      list[at < 0 ? 0 : at].tabIndex = 0;
    });
    const value = cells[p][at].textContent;
    const found = places.length ? `also ${places.join(" and ")}` : "nowhere else";
    note.textContent = `${place(p, at)} = ${value} is ${found}.`;
  };

  const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  const move = (event, p, at) => {
    const columns = width(p);
    const rows = cells[p].length / columns;
    let [i, j] = [Math.floor(at / columns), at % columns];
    if (event.key === "Home") j = 0;
    else if (event.key === "End") j = columns - 1;
    else if (STEPS[event.key]) {
      i = Math.min(rows - 1, Math.max(0, i + STEPS[event.key][0]));
      j = Math.min(columns - 1, Math.max(0, j + STEPS[event.key][1]));
    } else return;
    event.preventDefault();
    event.stopPropagation();
    choose(p, i * columns + j);
    cells[p][i * columns + j].focus();
  };

  cells.forEach((list, p) =>
    list.forEach((cell, at) => {
      cell.dataset.lmSuppressShortcuts = "true"; // JupyterLab would eat the arrows
      cell.addEventListener("click", () => {
        choose(p, at);
        cell.focus();
      });
      cell.addEventListener("focus", () => choose(p, at));
      cell.addEventListener("keydown", (event) => move(event, p, at));
    }),
  );
  root.classList.add("attn-live");
  choose(0, data.start);
}
