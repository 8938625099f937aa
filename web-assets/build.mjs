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
writeFileSync(join(target, "manifest.json"), JSON.stringify(manifest, null, 2) + "\n");
console.log(`${Object.keys(manifest).length} files in ${target}`);
