// The script runs when it enters the page, so it stands inside its own figure. The
// same figure may stand on a page twice: each is started once.
const here = document.currentScript && document.currentScript.closest(".attn");
const roots = here ? [here] : document.querySelectorAll(`[data-attn="${name}"]`);
for (const root of roots) {
  if (root.dataset.ready) continue;
  root.dataset.ready = "yes";
  const packed = root.querySelector('script[type="application/json"]').textContent;
  root.querySelector(".attn-off").remove();
  start(root, JSON.parse(packed));
}
