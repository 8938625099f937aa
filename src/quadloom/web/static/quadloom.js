// "/" focuses the search box, unless a field has the focus.
"use strict";
document.addEventListener("keydown", (event) => {
  const field = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable;
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || field) return;
  const box = document.querySelector("[aria-keyshortcuts='/']");
  if (box) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});
// On a narrow screen the filters are collapsed above the hits; also after htmx has loaded new ones.
function foldFilters() {
  const filters = document.getElementById("filters");
  if (!filters || !window.matchMedia("(max-width: 48rem)").matches) return;
  filters.classList.add("compact");
  for (const filter of filters.querySelectorAll("details[open]")) filter.open = false;
}
foldFilters();
document.addEventListener("htmx:afterSwap", foldFilters);
// Suggestions for the search box. Without this script the box is a plain form, and /suggest lists them.
for (const box of document.querySelectorAll("input[data-suggest]")) {
  let asked = 0;
  box.addEventListener("input", async () => {
    const number = ++asked;
    const list = document.getElementById(box.getAttribute("list"));
    const response = await fetch("/suggest.json?q=" + encodeURIComponent(box.value)).catch(() => null);
    if (!list || !response || !response.ok || number !== asked) return;
    const found = (await response.json()).suggestions;
    list.replaceChildren(...found.map((item) => new Option(item.text, item.text)));
  });
}
