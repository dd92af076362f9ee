// Reads Markdown as far as the docs checks need it: code blocks, headings, links. A line of a code block is never a heading or a link.
import { githubSlug } from "../../docs/site/github-slug.mjs";

const fence = /^( *)(`{3,})([\w-]*)[^\n]*$/;

/** Returns the lines of a page, each with `isCode`; fences count as code. */
function linesOf(text) {
  let open = null;
  return text.split("\n").map((line) => {
    const match = fence.exec(line);
    if (open === null && match === null) return { line, isCode: false };
    if (open === null) open = match[2];
    else if (match !== null && match[2].length >= open.length && match[3] === "") open = null;
    return { line, isCode: true };
  });
}

/** Returns the page with the same line numbers and without code blocks, inline code and comments. */
const proseOf = (text) =>
  linesOf(text)
    .map(({ line, isCode }) => (isCode ? "" : line))
    .join("\n")
    .replaceAll(/<!--[^]*?-->/g, (comment) => comment.replaceAll(/[^\n]/g, " "));

/** Applies `change` to the text outside of code blocks. */
export function changeProse(text, change) {
  const parts = [];
  for (const { line, isCode } of linesOf(text)) {
    if (parts.at(-1)?.isCode !== isCode) parts.push({ isCode, lines: [] });
    parts.at(-1).lines.push(line);
  }
  return parts.map(({ isCode, lines }) => (isCode ? lines.join("\n") : change(lines.join("\n")))).join("\n");
}

/** Returns the name of a file that the paragraph before a block says to save it as: "Save this as `NAME`". */
const savedName = (before) => /[Ss]ave this as `([^`]+)`[^\n]*(?:\n[^\n]+)*$/.exec(before)?.[1] ?? null;

/**
 * Returns the code blocks of a page. `line` is the line of its first line of code, `before` the text directly before the block (at
 * most twelve lines), `file` the name that the page says to save it as.
 *
 * @returns {{ language: string, code: string, line: number, before: string, file: string | null }[]}
 */
export function codeBlocks(text) {
  const blocks = [];
  let [open, above] = [null, []];
  for (const [at, line] of text.split("\n").entries()) {
    const match = fence.exec(line);
    if (open === null && match !== null) {
      open = { indent: match[1].length, ticks: match[2], language: match[3], line: at + 2, lines: [] };
      open.before = above.join("\n").trim();
      above = [];
    } else if (open !== null && match !== null && match[2].length >= open.ticks.length && match[3] === "") {
      const { language, line: first, lines, before } = open;
      blocks.push({ language, line: first, before, file: savedName(before), code: `${lines.join("\n")}\n` });
      open = null;
    } else if (open !== null) open.lines.push(line.slice(Math.min(open.indent, /^ */.exec(line)[0].length)));
    else above = line.trim() === "" && above.at(-1)?.trim() === "" ? [] : [...above, line].slice(-12);
  }
  return blocks;
}

/** Returns the anchors of a page. A repeated heading gets -1, -2 …, as on GitHub. */
export function anchorsOf(text) {
  const anchors = new Set();
  for (const line of proseOf(text).split("\n")) {
    const heading = /^#{1,6} +(.*?)(?: +\{#([\w-]+)\})?$/.exec(line);
    if (heading !== null) {
      const plain = heading[1].replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[`*]/g, "");
      const slug = heading[2] ?? githubSlug(plain);
      let unique = slug;
      for (let count = 1; anchors.has(unique); count++) unique = `${slug}-${count}`;
      anchors.add(unique);
    }
    for (const [, id] of line.matchAll(/<a id="([\w-]+)">/g)) anchors.add(id);
  }
  return anchors;
}

export const titleOf = (text) => /^# +(.*)$/m.exec(proseOf(text))?.[1].replaceAll("`", "") ?? null;

/** Matches the target of a link or picture: `](target)`. */
export const linkPattern = /(!?\[(?:[^[\]]|\[[^\]]*\])*\])\(([^()\s]+)\)/g;

/** Returns the links and pictures of a page: `{ target, line }`. */
export function linksOf(text) {
  const prose = proseOf(text).replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[()[\]]/g, " "));
  return [...prose.matchAll(linkPattern)].map(({ 2: target, index }) => ({
    target,
    line: prose.slice(0, index).split("\n").length,
  }));
}
