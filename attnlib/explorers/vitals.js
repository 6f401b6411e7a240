// Choose a patient and a step; the charts are drawn, only their marks move.
function start(root, data) {
  const patient = root.querySelector("select");
  const slider = root.querySelector("input");
  const output = root.querySelector("output");
  const wards = [...root.querySelectorAll(".attn-ward")];
  const draw = () => {
    const at = Number(slider.value);
    const step = String(data.steps[at]);
    output.textContent = step;
    slider.setAttribute("aria-valuetext", `step ${step}`);
    wards.forEach((ward, who) => {
      ward.hidden = who !== patient.selectedIndex;
      if (ward.hidden) return;
      ward.querySelectorAll("figure").forEach((tile, sign) => {
        const line = tile.querySelector(".attn-at");
        const x = ((200 * at) / Math.max(data.steps.length - 1, 1)).toFixed(0);
        line.setAttribute("x1", x);
        line.setAttribute("x2", x);
        const numbers = tile.querySelectorAll(".attn-now span");
        data.values[who][sign][at].forEach((value, i) => {
          numbers[i].textContent = shown(value, data.digits[sign]);
        });
      });
    });
  };
  for (const input of [patient, slider]) {
    input.addEventListener("input", draw);
    input.disabled = false;
  }
  draw(); // a page that is reloaded may keep an older choice
}
