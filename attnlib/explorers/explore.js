// A native slider over states that were computed beforehand.
function start(root, data) {
  const input = root.querySelector("input");
  const output = root.querySelector("output");
  const panels = root.querySelectorAll("[data-kind]");
  const draw = () => {
    const at = Number(input.value);
    output.textContent = data.labels[at];
    input.setAttribute("aria-valuetext", data.labels[at]);
    data.states[at].forEach((panel, i) => paint(panels[i], panel));
  };
  input.addEventListener("input", draw);
  input.disabled = false;
  draw(); // a page that is reloaded may keep an older position of the slider
}
