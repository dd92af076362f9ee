// The sections of the reference that are made from schemas and commands.
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

/** Returns the pages of the reference whose generated sections are not current: path, and text as it should be. */
export function stalePages(parts) {
  return readdirSync(reference)
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(reference, name))
    .map((path) => [path, readFileSync(path, "utf8")])
    .map(([path, text]) => [path, text, withSections(text, parts)])
    .filter(([, text, current]) => text !== current)
    .map(([path, , current]) => [path, current]);
}
