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
