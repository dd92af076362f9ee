// The sections of the reference that are made from schemas and commands, and the map of CONTRIBUTING.md.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "../steps.mjs";

const reference = join(root, "docs/reference");

/** Returns a page with its generated sections, each between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. */
export const withSections = (text, parts) =>
  text.replaceAll(/<!-- generated: (\w+) -->\n(?:[^]*?<!-- end of \1 -->\n)?/g, (section, name) =>
    parts[name] === undefined
      ? section
      : `<!-- generated: ${name} -->\n\n${parts[name].trim()}\n\n<!-- end of ${name} -->\n`,
  );

/** Returns the pages whose generated sections are not current: path, and text as it should be. */
export function stalePages(parts) {
  const pages = readdirSync(reference).filter((name) => name.endsWith(".md"));
  return [join(root, "CONTRIBUTING.md"), ...pages.map((name) => join(reference, name))]
    .map((path) => [path, readFileSync(path, "utf8")])
    .map(([path, text]) => [path, text, withSections(text, parts)])
    .filter(([, text, current]) => text !== current)
    .map(([path, , current]) => [path, current]);
}
