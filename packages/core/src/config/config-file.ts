import { dirname } from "node:path";
import { isNode, LineCounter, parse, parseDocument, visit, type Document } from "yaml";
import { quoteValue } from "../internal/quote-value.ts";
import { PeriodicEvalError, type ValuePath } from "../errors.ts";
import { errorMessage } from "../internal/error-message.ts";
import { readTextFile } from "../snapshots/storage/read-file.ts";

export interface ConfigFile {
  readonly value: unknown;
  /** For errors: the file and line of a value, or the override that set it; then its path. */
  where(path: ValuePath): string;
  /** Whether an override set the value, or a map that it stands in. */
  isOverridden(path: ValuePath): boolean;
  /** What a relative path that stands there begins with: the file's folder, or the working directory for an override's. */
  folderOf(path: ValuePath): string;
}

interface Override {
  readonly text: string;
  readonly path: ValuePath;
}

/**
 * What a YAML or JSON file holds after overrides `a.b.0.c=value`: keys of maps and indexes of lists, the value in YAML. A
 * map that is not there is made.
 *
 * @throws PeriodicEvalError `config` with file and line for what is no YAML, or with the override that says nothing.
 */
export async function readConfigFile(file: string, overrides: readonly string[] = []): Promise<ConfigFile> {
  const lines = new LineCounter();
  const document = parseDocument(await readTextFile(file, "config"), { lineCounter: lines, merge: true });
  const [fault] = document.errors;
  if (fault !== undefined) {
    throw new PeriodicEvalError({
      code: "config",
      where: `${file}:${lines.linePos(fault.pos[0]).line}`,
      got: fault.message.split("\n")[0]!.replace(/ at line \d+, column \d+:?$/, ""),
      expected: "YAML or JSON",
      fix: "Mend the file at that line; texts with a colon, a dash or a hash in them want quotes.",
      cause: fault,
    });
  }
  const value = plainOf(document, (at) => (at === null ? file : `${file}:${lines.linePos(at).line}`));
  const set = overrides.map((text) => override(value, text));
  const setBy = (path: ValuePath) =>
    set.findLast((one) => one.path.every((part, i) => String(part) === String(path[i])));
  return {
    value,
    isOverridden: (path) => setBy(path) !== undefined,
    folderOf: (path) => (setBy(path) === undefined ? dirname(file) : process.cwd()),
    where(path) {
      const name = path.join(".");
      const by = setBy(path);
      if (by !== undefined) return `${by.text} (${name})`;
      // Of what is not there, the place where it would be.
      for (let depth = path.length; depth >= 0; depth -= 1) {
        const node: unknown = document.getIn(path.slice(0, depth), true);
        if (isNode(node) && node.range)
          return `${file}:${lines.linePos(node.range[0]).line} ${name}`.trimEnd();
      }
      return `${file} ${name}`.trimEnd();
    },
  };
}

/** Aliases are read as copies: an override of one place shall not show in another. */
function plainOf(document: Document.Parsed, place: (at: number | null) => string): unknown {
  try {
    return JSON.parse(JSON.stringify(document.toJS() ?? {}));
  } catch (cause) {
    let at: number | null = null;
    visit(document, {
      Alias(_key, alias) {
        if (alias.resolve(document) !== undefined) return undefined;
        at = alias.range?.[0] ?? null;
        return visit.BREAK;
      },
    });
    throw new PeriodicEvalError({
      code: "config",
      where: place(at),
      got: errorMessage(cause).split("\n")[0]!,
      expected: "aliases (*name) of anchors (&name) that stand before them and do not hold them",
      fix: "Mend the alias; a text that begins with * or & wants quotes.",
      cause,
    });
  }
}

/** Puts the value of one override into place. */
function override(root: unknown, text: string): Override {
  const at = text.indexOf("=");
  const parts = text.slice(0, Math.max(0, at)).split(".");
  if (at < 0 || parts.includes(""))
    throw wrong(text, quoteValue(text), "key.key.0.key=value", "Write the path, =, and a value in YAML.");
  const path: (string | number)[] = [];
  let holder = root;
  for (const [depth, part] of parts.entries()) {
    const key = keyIn(holder, part, path, text);
    path.push(key);
    const map = holder as Record<string | number, unknown>;
    if (depth === parts.length - 1) map[key] = valueOf(text, at);
    else holder = map[key] = (Object.hasOwn(map, key) ? map[key] : null) ?? {};
  }
  return { text, path };
}

function keyIn(holder: unknown, part: string, path: ValuePath, text: string): string | number {
  const name = path.join(".");
  if (Array.isArray(holder)) {
    if (/^\d+$/.test(part) && Number(part) < holder.length) return Number(part);
    throw wrong(
      text,
      `"${part}"`,
      `an index of ${name}, which has ${holder.length} entries from 0`,
      "Correct the index.",
    );
  }
  // Written as a key it would change what every object inherits.
  if (part === "__proto__")
    throw wrong(text, `the key "${part}"`, "a key that configurations have", "Correct the path.");
  if (typeof holder === "object" && holder !== null) return part;
  throw wrong(
    text,
    `${name} ${quoteValue(holder)}`,
    `a map or a list to find "${part}" in`,
    "Correct the path.",
  );
}

function valueOf(text: string, at: number): unknown {
  try {
    return parse(text.slice(at + 1)) as unknown;
  } catch (cause) {
    throw wrong(text, errorMessage(cause).split("\n")[0]!, "a value in YAML", "Quote the value.");
  }
}

const wrong = (text: string, got: string, expected: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where: `override ${text}`, got, expected, fix });
