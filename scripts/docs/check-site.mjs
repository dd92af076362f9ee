// Checks the built site: every link leads to a file and an anchor of it, and no address begins at the host's root.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, posix } from "node:path";

/** Returns `{ problems, summary }`. */
export function checkSite(folder) {
  const paths = readdirSync(folder, { recursive: true })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path.endsWith(".html") && !path.startsWith("demo/"));
  const pages = new Map(paths.map((path) => [path, readFileSync(join(folder, path), "utf8")]));
  const ids = new Map(
    [...pages].map(([path, html]) => [
      path,
      new Set([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)),
    ]),
  );
  const problems = new Set();
  let count = 0;
  for (const [path, html] of pages)
    for (const [, , written] of html.matchAll(
      /<(?:a|link|script|img|source|iframe)\b[^>]*?\b(href|src)="([^"]*)"/g,
    )) {
      const target = written.replaceAll("&amp;", "&");
      if (target === "" || /^([a-z]+:|\/\/)/.test(target)) continue;
      count++;
      const [address, anchor] = target.split("#");
      const place = address === "" ? path : posix.join(posix.dirname(path), decodeURI(address));
      const file = place.endsWith("/") || place === "." ? posix.join(place, "index.html") : place;
      if (target.startsWith("/")) problems.add(`${path}: ${target} begins at the root of the host`);
      else if (!existsSync(join(folder, file))) problems.add(`${path}: ${target} leads to no file`);
      else if (anchor && ids.has(file) && !ids.get(file).has(decodeURIComponent(anchor)))
        problems.add(`${path}: ${target} leads to no heading`);
    }
  return { problems: [...problems], summary: `${count} links in ${pages.size} built pages` };
}
