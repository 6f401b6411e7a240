// Switches that are on or off, and a state for each of their sets.
function start(root, data) {
  const inputs = [...root.querySelectorAll("input")];
  const output = root.querySelector("output");
  const panels = root.querySelectorAll("[data-kind]");
  const draw = () => {
    const at = inputs.reduce((sum, input, i) => sum + (input.checked ? 2 ** i : 0), 0);
    output.textContent = data.labels[at];
    data.states[at].forEach((panel, i) => paint(panels[i], panel));
  };
  for (const input of inputs) {
    input.addEventListener("change", draw);
    input.disabled = false;
  }
  draw(); // a page that is reloaded may keep older positions of the switches
}
