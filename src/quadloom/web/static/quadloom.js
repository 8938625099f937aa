// "/" goes to the search box from anywhere but a field.
"use strict";
document.addEventListener("keydown", (event) => {
  const field = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable;
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || field) return;
  const box = document.querySelector("main input[type=search]") || document.querySelector("#quick");
  if (box) {
    event.preventDefault();
    box.focus();
    box.select();
  }
});
// On a narrow screen the filters start closed: the hits come first.
if (window.matchMedia("(max-width: 48rem)").matches) {
  for (const filter of document.querySelectorAll("aside details[open]")) filter.open = false;
}
