// While a condition is typed: how many things it would leave.
"use strict";
(() => {
  const form = document.getElementById("condition-form");
  const would = document.getElementById("would");
  if (!form) return;
  let last = 0;
  let timer = 0;
  async function count() {
    const mine = ++last;
    const answer = await fetch(`/ask.json?${new URLSearchParams(new FormData(form))}`);
    if (mine !== last) return;
    const found = answer.ok ? (await answer.json()).things : null;
    would.textContent = found === null ? "" : found === 1 ? "leaves 1 thing" : `leaves ${found} things`;
  }
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => count().catch(() => {}), 250);
  });
})();
