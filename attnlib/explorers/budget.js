// A budget: the line moves, and what costs more turns grey and hollow.
function start(root, data) {
  const input = root.querySelector("input");
  const output = root.querySelector("output");
  const line = root.querySelector(".attn-limit");
  const note = root.querySelector(".attn-note");
  const rows = root.querySelector(".attn-costs").tBodies[0].rows;
  const draw = () => {
    const at = Number(input.value);
    output.textContent = data.labels[at];
    input.setAttribute("aria-valuetext", data.labels[at]);
    line.setAttribute("x1", data.x[at]);
    line.setAttribute("x2", data.x[at]);
    for (const point of root.querySelectorAll("g[data-at]")) {
      const over = Boolean(data.over[at][point.dataset.at]);
      const circle = point.querySelector("circle");
      point.setAttribute("class", over ? "attn-over" : "");
      circle.setAttribute("fill", over ? "none" : "#0072b2");
      circle.setAttribute("stroke", over ? "#8c8c8c" : "#0072b2");
    }
    data.over[at].forEach((over, i) => {
      rows[i].className = over ? "attn-over" : "";
      rows[i].cells[3].textContent = over ? "over" : "within";
    });
    paint(note, data.states[at][0]);
  };
  input.addEventListener("input", draw);
  input.disabled = false;
  draw(); // a page that is reloaded may keep an older position of the slider
}
