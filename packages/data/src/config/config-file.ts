import { dirname } from "node:path";
import { parse } from "yaml";
import { PeriodicEvalError, type ValuePath } from "@periodic-eval/contracts";
import { errorMessage, isRecord, quoteValue, atOption } from "@periodic-eval/contracts/options";
import { readTextFile } from "@periodic-eval/store";
import { parseYamlText } from "../rows/parse-yaml.ts";

export interface ConfigFile {
  readonly value: unknown;
  /** Returns the file and line of a value, or the override that set it, and its path. For errors. */
  where(path: ValuePath): string;
  /** Whether an override set the value, or an object that contains it. */
  isOverridden(path: ValuePath): boolean;
  /** Returns the folder that a relative path at this place refers to: the file's, or the working directory for an override. */
  folderOf(path: ValuePath): string;
}

/** An override that a flag of the command line stands for: errors name the flag. */
export interface FlagOverride {
  readonly text: string;
  /** `--backend`. */
  readonly flag: string;
}

interface Override {
  readonly path: ValuePath;
  /** Returns its place, for an error about the value at this path. */
  readonly where: (name: string) => string;
}

/**
 * Reads a YAML or JSON file and applies overrides `a.b.0.c=value`: keys of objects and indexes of arrays, and a value in YAML.
 * Missing objects are created.
 *
 * @throws PeriodicEvalError `config` with file and line for invalid YAML, or naming a wrong override.
 */
export async function readConfigFile(
  file: string,
  overrides: readonly (string | FlagOverride)[] = [],
): Promise<ConfigFile> {
  const text = await atOption({ where: "config", path: ["config"] }, () => readTextFile(file, "config"));
  const { value: parsed, document, lineOf } = parseYamlText(text, file, "config");
  const value = parsed ?? {};
  const set = overrides.map((input): Override => {
    if (typeof input !== "string") return { path: override(value, input.text), where: () => input.flag };
    return { path: override(value, input), where: (name) => `${input} (${name})` };
  });
  const setBy = (path: ValuePath) =>
    set.findLast((entry) => entry.path.every((part, i) => String(part) === String(path[i])));
  return {
    value,
    isOverridden: (path) => setBy(path) !== undefined,
    folderOf: (path) => (setBy(path) === undefined ? dirname(file) : process.cwd()),
    where(path) {
      const name = path.join(".");
      // An override may have created the object that contains its value.
      const inside = (entry: Override) =>
        path.length > 0 && path.every((part, i) => String(part) === String(entry.path[i]));
      const by = setBy(path) ?? (document.hasIn(path) ? undefined : set.findLast(inside));
      if (by !== undefined) return by.where(name);
      // For a missing value, the innermost object that exists on its path.
      for (let depth = path.length; depth >= 0; depth -= 1) {
        const line = lineOf(path.slice(0, depth));
        if (line !== null) return `${file}:${line} ${name}`.trimEnd();
      }
      return `${file} ${name}`.trimEnd();
    },
  };
}

/** Applies one override and returns its path. */
function override(root: unknown, text: string): ValuePath {
  const wrong = (got: string, expected: string, fix: string) =>
    new PeriodicEvalError({ code: "config", where: `override ${text}`, got, expected, fix, isWritten: true });
  const at = text.indexOf("=");
  const parts = text.slice(0, Math.max(0, at)).split(".");
  if (at < 0 || parts.includes(""))
    throw wrong(quoteValue(text), "key.key.0.key=value", "Write the path, =, and a value in YAML.");
  const path: (string | number)[] = [];
  let holder = root;
  for (const [depth, part] of parts.entries()) {
    const name = path.join(".");
    const isList = Array.isArray(holder);
    if (Array.isArray(holder) && (!/^\d+$/.test(part) || Number(part) >= holder.length)) {
      const expected = `an index of ${name}, which has ${holder.length} entries from 0`;
      throw wrong(`"${part}"`, expected, "Correct the index.");
    }
    // Assigning to this key would change the prototype of every object.
    if (part === "__proto__") throw wrong(`the key "${part}"`, "another key", "Correct the path.");
    if (!isList && !isRecord(holder)) {
      const expected = `an object or an array that contains "${part}"`;
      throw wrong(`${name} ${quoteValue(holder)}`, expected, "Correct the path.");
    }
    const key = isList ? Number(part) : part;
    path.push(key);
    const map = holder as Record<string | number, unknown>;
    if (depth < parts.length - 1) holder = map[key] = (Object.hasOwn(map, key) ? map[key] : null) ?? {};
    else
      try {
        map[key] = parse(text.slice(at + 1)) as unknown;
      } catch (cause) {
        throw wrong(errorMessage(cause).split("\n")[0]!, "a value in YAML", "Quote the value.");
      }
  }
  return path;
}
