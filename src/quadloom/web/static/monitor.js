// Refreshes figures and sentence every two seconds until the reader pauses it; screen readers hear the sentence at most
// every ten.
"use strict";
(() => {
  const hold = document.getElementById("hold");
  const status = document.getElementById("spoken");
  let spoken = Date.now();
  hold.hidden = false;
  hold.addEventListener("click", () => {
    const held = hold.getAttribute("aria-pressed") === "true";
    hold.setAttribute("aria-pressed", String(!held));
    hold.textContent = held ? "Stop refreshing" : "Refresh again";
  });

  async function refresh() {
    if (hold.getAttribute("aria-pressed") === "true" || document.hidden) return;
    const live = document.getElementById("live");
    if (document.activeElement && live.contains(document.activeElement)) return;
    const answer = await fetch("/monitor", { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = fresh.getElementById("live");
    const said = fresh.getElementById("sentence").textContent;
    // What the reader has opened stays open.
    const [before, after] = [live.querySelectorAll("details"), next.querySelectorAll("details")];
    after.forEach((part, place) => {
      if (before[place]) part.open = before[place].open;
    });
    live.replaceWith(document.adoptNode(next));
    const [steer, renewed] = [document.getElementById("steer"), fresh.getElementById("steer")];
    if (steer && renewed && !steer.contains(document.activeElement)) steer.replaceWith(document.adoptNode(renewed));
    if (Date.now() - spoken > 10000) {
      status.textContent = said;
      spoken = Date.now();
    }
  }

  setInterval(() => refresh().catch(() => {}), 2000);
})();
