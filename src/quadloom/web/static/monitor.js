// Refreshes the figures every two seconds until the reader pauses it; the sentence for screen readers at most every ten.
"use strict";
(() => {
  const hold = document.getElementById("hold");
  const sentence = document.getElementById("sentence");
  let chart = null;
  let spoken = Date.now();
  hold.hidden = false;
  hold.addEventListener("click", () => {
    const held = hold.getAttribute("aria-pressed") === "true";
    hold.setAttribute("aria-pressed", String(!held));
    hold.textContent = held ? "Stop refreshing" : "Refresh again";
  });

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function draw(points) {
    const place = document.getElementById("chart");
    if (!window.uPlot || !place || points.length < 2) return;
    const names = ["fetch", "transform", "index"];
    const data = [points.map((point) => point.at), ...names.map((name) => points.map((point) => point.rates[name] || 0))];
    place.hidden = false;
    if (chart && place.contains(chart.root)) {
      chart.setData(data);
      return;
    }
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);
    const strokes = [colour("--accent"), colour("--warn"), colour("--bad")];
    const dashes = [[], [6, 4], [2, 3]];
    chart = new window.uPlot(
      {
        width: place.clientWidth,
        height: 200,
        scales: { y: { range: (_chart, _least, most) => [0, Math.max(1, 1.05 * (most || 0))] } },
        axes: [{ ...axis, space: 80, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300], values: (_chart, splits) => splits.map(clock) }, axis],
        series: [{ label: "UTC", value: (_chart, seconds) => (seconds == null ? "–" : clock(seconds)) }, ...names.map((name, index) => ({ label: name, stroke: strokes[index], width: 2, dash: dashes[index] }))],
      },
      data,
      place,
    );
  }

  async function refresh() {
    if (hold.getAttribute("aria-pressed") === "true" || document.hidden) return;
    if (document.activeElement && document.getElementById("live").contains(document.activeElement)) return;
    const answer = await fetch("/monitor", { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = fresh.getElementById("live");
    const [kept, slot] = [document.getElementById("chart"), next.querySelector("#chart")];
    if (kept && slot) slot.replaceWith(kept); // it exists only while a crawl runs
    document.getElementById("live").replaceWith(document.adoptNode(next));
    const [steer, renewed] = [document.getElementById("steer"), fresh.getElementById("steer")];
    if (steer && renewed && !steer.contains(document.activeElement)) steer.replaceWith(document.adoptNode(renewed));
    if (Date.now() - spoken > 10000) {
      sentence.textContent = fresh.getElementById("sentence").textContent;
      spoken = Date.now();
    }
    const figures = await fetch("/monitor.json");
    if (figures.ok) draw((await figures.json()).points);
  }

  fetch("/monitor.json").then((answer) => answer.json()).then((figures) => draw(figures.points));
  setInterval(() => refresh().catch(() => {}), 2000);
})();
