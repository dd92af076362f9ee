// Makes the built site independent of its address: VitePress needs a base path at build time, and this replaces it by the path at which
// each page is served. Strings of scripts become expressions, links become relative.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { parseSync } from "oxc-parser";

/** Stands for the base path during the build. */
export const placeholder = "/__docs_base__/";

const variable = "globalThis.__docsBase";

/** Returns the nodes of a syntax tree that hold strings. */
function* stringsIn(node) {
  if (node === null || typeof node !== "object") return;
  if (node.type === "Literal" && typeof node.value === "string") yield node;
  if (node.type === "TemplateElement") yield node;
  for (const key of Object.keys(node)) {
    const value = node[key];
    if (Array.isArray(value)) for (const one of value) yield* stringsIn(one);
    else if (key !== "parent") yield* stringsIn(value);
  }
}

/** Replaces the placeholder in strings and templates of a script by an expression. */
export function relativeScript(file, code) {
  if (!code.includes(placeholder)) return code;
  const { program, errors } = parseSync(file, code);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  const found = [...stringsIn(program)]
    .filter(({ start, end }) => code.slice(start, end).includes(placeholder))
    .sort((a, b) => b.start - a.start);
  let changed = code;
  for (const { type, start, end } of found) {
    const text = code.slice(start, end);
    const quote = text[0];
    const joined =
      type === "TemplateElement"
        ? text.replaceAll(placeholder, `\${${variable}}`)
        : `(${text.replaceAll(placeholder, `${quote}+${variable}+${quote}`)})`;
    changed = changed.slice(0, start) + joined + changed.slice(end);
  }
  return changed;
}

/** Links in the page become absolute before the scripts run, because the address of the page changes without loading it again. */
const absolute = `for(const e of document.querySelectorAll("a[href],img[src],link[href]"))for(const k of["href","src"])if(e.hasAttribute(k)&&!e.getAttribute(k).startsWith("#"))e.setAttribute(k,e[k])`;

function relativePage(path, html) {
  const up = "../".repeat(path.split("/").length - 1) || "./";
  const scripts = html.replaceAll(
    /(<script(?![^>]*\bsrc=)[^>]*>)([^]*?)(<\/script>)/g,
    (_, open, code, close) => {
      return `${open}${relativeScript("inline.js", code)}${close}`;
    },
  );
  const set = `<script>${variable}=new URL(${JSON.stringify(up)},location.href).pathname</script>`;
  return scripts
    .replaceAll(/\b(href|src)="\/__docs_base__\//g, `$1="${up}`)
    .replace("<head>", `<head>${set}`)
    .replace("</body>", `<script>${absolute}</script></body>`);
}

/**
 * Rewrites the site in `folder`.
 *
 * @throws Error if a placeholder remains.
 */
export function makeRelative(folder) {
  const paths = readdirSync(folder, { recursive: true }).map((path) => path.replaceAll("\\", "/"));
  for (const path of paths.filter((one) => /\.(html|js|css|json)$/.test(one))) {
    const file = join(folder, path);
    const text = readFileSync(file, "utf8");
    const styles = () => text.replaceAll(placeholder, `${posix.relative(posix.dirname(path), ".") || "."}/`);
    const changes = {
      html: () => relativePage(path, text),
      js: () => relativeScript(path, text),
      css: styles,
    };
    const changed = changes[path.split(".").at(-1)]?.() ?? text;
    if (changed.includes(placeholder)) {
      const at = changed.indexOf(placeholder);
      throw new Error(`${path}: the base path remains in ${changed.slice(Math.max(0, at - 60), at + 60)}`);
    }
    if (changed !== text) writeFileSync(file, changed);
  }
}
