// Checks the links of pages: the target exists, and so does the anchor.
import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { root } from "../steps.mjs";
import { anchorsOf, linksOf } from "./markdown.mjs";

const isExternal = (target) => /^[a-z][a-z+.-]*:/i.test(target);

/**
 * Checks the links between the pages of the site.
 *
 * @param pages The pages by path, with generated ones.
 * @param isFile Whether a path below docs/ is a picture or another file of the site.
 * @returns `{ problems, count }`
 */
export function checkLinks(pages, isFile) {
  const anchors = new Map([...pages].map(([path, text]) => [path, anchorsOf(text)]));
  const problems = [];
  let count = 0;
  for (const [path, text] of pages)
    for (const { target, line } of linksOf(text)) {
      if (isExternal(target)) continue;
      count++;
      const [file, anchor] = target.split("#");
      const place = file === "" ? path : posix.join(posix.dirname(path), file);
      const found = anchors.get(place);
      const complain = (what) => problems.push(`docs/${path}:${line}: ${target}: ${what}`);
      if (found === undefined && !isFile(place)) complain("no such page");
      else if (anchor !== undefined && found !== undefined && !found.has(anchor)) complain("no such heading");
    }
  return { problems, count };
}

/**
 * Checks the links of files as they are in the repository. Headings that are generated cannot be checked there.
 *
 * @param files Text by path from the repository's root.
 */
export function checkRepositoryLinks(files) {
  const problems = [];
  let count = 0;
  for (const [path, text] of files)
    for (const { target, line } of linksOf(text)) {
      if (isExternal(target)) continue;
      count++;
      const [file, anchor] = target.split("#");
      const place = file === "" ? path : posix.join(posix.dirname(path), decodeURI(file));
      const complain = (what) => problems.push(`${path}:${line}: ${target}: ${what}`);
      const other = files.get(place);
      if (other === undefined && !existsSync(join(root, place))) complain("no such file");
      else if (
        anchor !== undefined &&
        other !== undefined &&
        !other.includes("<!-- generated:") &&
        !anchorsOf(other).has(anchor)
      )
        complain("no such heading");
    }
  return { problems, count };
}
