import { PeriodicEvalError } from "@periodic-eval/core";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import { nearest, quoteValue } from "@periodic-eval/core/internal";
import { isAbsolute, normalize } from "node:path";
import { builtInVerifiers } from "./built-in.ts";

/** How a completion is checked: by a verifier that is built in, or by an export of a module in the benchmark's folder. */
export type VerifierSpec =
  | { readonly name: string; readonly args: VerifierArgs }
  | { readonly module: string; readonly export: string; readonly args: VerifierArgs };

/**
 * What a task, or `metadata.yaml`, says of its verifier: a name, `{ name, args }` or `{ module, export, args }`.
 *
 * @throws PeriodicEvalError `data` with an empty place, or that of a key: the caller knows file and line.
 */
export function verifierSpec(value: unknown): VerifierSpec {
  if (typeof value === "string") return { name: knownName(value), args: {} };
  if (!isObject(value))
    throw wrong("", quoteValue(value), "a verifier's name, { name, args } or { module, export, args }");
  const { name, module, export: exported, args = {} } = value;
  if (!isObject(args)) throw wrong(".args", quoteValue(args), "an object", "Write { argument: value }.");
  const isModule = "module" in value || "export" in value;
  checkKnown(value, isModule ? ["module", "export", "args"] : ["name", "args"]);
  if (!isModule) return { name: knownName(name), args: args as VerifierArgs };
  if (!isFilled(exported))
    throw wrong(".export", quoteValue(exported), "the name of what the module exports");
  return { module: pathInside(module), export: exported, args: args as VerifierArgs };
}

function checkKnown(value: object, known: readonly string[]): void {
  const key = Object.keys(value).find((one) => !known.includes(one));
  if (key === undefined) return;
  const close = nearest(key, known);
  const fix = close === null ? "Remove it; arguments stand under args." : `Did you mean "${close}"?`;
  throw wrong("", `the unknown key "${key}"`, `some of ${known.join(", ")}`, fix);
}

function knownName(name: unknown): string {
  const names = Object.keys(builtInVerifiers);
  if (names.includes(name as string)) return name as string;
  const close = typeof name === "string" ? nearest(name, names) : null;
  throw wrong(
    "",
    name === undefined ? "no name" : quoteValue(name),
    `one of ${names.join(", ")}, or { module, export }`,
    close === null ? "Name one of them, or a function of your own." : `Did you mean "${close}"?`,
  );
}

/** A benchmark is a folder: what it runs is in it, and is copied and hashed with it. */
function pathInside(path: unknown): string {
  if (isFilled(path) && !isAbsolute(path) && !normalize(path).startsWith("..")) return path;
  throw wrong(
    ".module",
    quoteValue(path),
    "a path relative to the benchmark's folder, and inside it",
    'Copy the module into the folder, and write "./check.js".',
  );
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isFilled = (value: unknown): value is string => typeof value === "string" && value !== "";

const wrong = (key: string, got: string, expected: string, fix = "Correct the verifier.") =>
  new PeriodicEvalError({ code: "data", where: `verifier${key}`, got, expected, fix });
