// Copies what the site needs of other projects into the package, with a digest in each name, and writes their list.
// Run `npm ci --ignore-scripts && npm run build` here; `make web` does both.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "quadloom", "web", "static", "vendor");
const files = {
  "htmx.js": "htmx.org/dist/htmx.min.js",
  "yasgui.js": "@zazuko/yasgui/build/yasgui.min.js",
  "yasgui.css": "@zazuko/yasgui/build/yasgui.min.css",
};

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
const manifest = {};
for (const [name, source] of Object.entries(files)) {
  const body = readFileSync(join(here, "node_modules", source), "utf8").replace(/\n?\/[/*]# sourceMappingURL=.*$/gm, "");
  const digest = createHash("sha256").update(body).digest("hex").slice(0, 8);
  const extension = extname(name);
  manifest[name] = `${name.slice(0, -extension.length)}-${digest}${extension}`;
  writeFileSync(join(target, manifest[name]), body);
}
// Coasts and borders of Natural Earth (public domain), 1 : 50 million, as rings of hundredths of a degree: west, south,
// east, north, then the points, each as the difference from the one before. The server draws the part that a map shows.
const atlas = JSON.parse(readFileSync(join(here, "node_modules", "world-atlas/countries-50m.json"), "utf8"));
const { scale, translate } = atlas.transform;
const arcs = atlas.arcs.map((arc) => {
  let x = 0, y = 0;
  return arc.map(([dx, dy]) => [(x += dx), (y += dy)].map((value, axis) => Math.round(100 * (value * scale[axis] + translate[axis]))));
});
const rings = atlas.objects.countries.geometries
  .flatMap(({ type, arcs }) => (type === "Polygon" ? arcs : arcs.flat()))
  .map((ring) => ring.flatMap((number) => (number < 0 ? arcs[~number].toReversed() : arcs[number])));
const land = rings.map((ring) => {
  const sides = [0, 1].map((axis) => ring.map((point) => point[axis]));
  const box = [Math.min(...sides[0]), Math.min(...sides[1]), Math.max(...sides[0]), Math.max(...sides[1])];
  const points = ring.filter((point, place) => !place || String(point) !== String(ring[place - 1]));
  return [...box, ...points.flatMap(([x, y], place) => (place ? [x - points[place - 1][0], y - points[place - 1][1]] : [x, y]))];
});
const drawn = JSON.stringify(land);
manifest["land.json"] = `land-${createHash("sha256").update(drawn).digest("hex").slice(0, 8)}.json`;
writeFileSync(join(target, manifest["land.json"]), drawn);
writeFileSync(join(target, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n");
console.log(`${Object.keys(manifest).length} files in ${target}`);
