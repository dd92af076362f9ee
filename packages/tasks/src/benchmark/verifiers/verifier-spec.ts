import { isAbsolute, normalize } from "node:path";
import { dataError, didYouMean, isFilled, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import type { PeriodicEvalError } from "@periodic-eval/core";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import { jsonSchema, toolCallsMatch } from "./json-in-text.ts";
import { numeric } from "./numeric.ts";
import { contains, exactMatch, regexMatch } from "./text-match.ts";
import type { VerifierKind } from "./verifier.ts";

/** How a completion is checked: by a built-in verifier, or by an export of a module in the benchmark's folder. */
export type VerifierSpec =
  | { readonly name: string; readonly args: VerifierArgs }
  | { readonly module: string; readonly export: string; readonly args: VerifierArgs };

/**
 * Parses a verifier of a task or of `metadata.yaml`: a name, `{ name, args }` or `{ module, export, args }`.
 *
 * @throws PeriodicEvalError `data` whose `where` is the key; the caller adds file and line.
 */
export function verifierSpec(value: unknown): VerifierSpec {
  if (typeof value === "string") return { name: knownName(value), args: {} };
  if (!isRecord(value))
    throw specError("", quoteValue(value), "a verifier's name, { name, args } or { module, export, args }");
  const { name, module, export: exported, args = {} } = value;
  if (!isRecord(args)) throw specError(".args", quoteValue(args), "an object", "Write { argument: value }.");
  const isModule = "module" in value || "export" in value;
  checkKnown(value, isModule ? ["module", "export", "args"] : ["name", "args"]);
  if (!isModule) return { name: knownName(name), args: args as VerifierArgs };
  if (!isFilled(exported))
    throw specError(".export", quoteValue(exported), "the name of an export of the module");
  return { module: pathInside(module), export: exported, args: args as VerifierArgs };
}

function checkKnown(value: object, known: readonly string[]): void {
  const key = Object.keys(value).find((one) => !known.includes(one));
  if (key === undefined) return;
  const fix = didYouMean(key, known) ?? "Remove it, or move it into args.";
  throw specError("", `the unknown key "${key}"`, `some of ${known.join(", ")}`, fix);
}

function knownName(name: unknown): string {
  const names = Object.keys(builtInVerifiers);
  if (names.includes(name as string)) return name as string;
  throw specError(
    "",
    name === undefined ? "no name" : quoteValue(name),
    `one of ${names.join(", ")}, or { module, export }`,
    didYouMean(name, names) ?? "Name one of them, or a custom function.",
  );
}

/** Requires a path inside the benchmark's folder, so that its code is copied and hashed with it. */
function pathInside(path: unknown): string {
  if (isFilled(path) && !isAbsolute(path) && !normalize(path).startsWith("..")) return path;
  throw specError(
    ".module",
    quoteValue(path),
    "a path relative to the benchmark's folder, and inside it",
    'Copy the module into the folder, and write "./check.js".',
  );
}

const specError = (
  key: string,
  got: string,
  expected: string,
  fix = "Correct the verifier.",
): PeriodicEvalError => dataError(`verifier${key}`, got, expected, fix);

/** The built-in verifiers, by the name that tasks use. */
export const builtInVerifiers: Readonly<Record<string, VerifierKind>> = {
  exact_match: exactMatch,
  contains,
  regex_match: regexMatch,
  numeric,
  json_schema: jsonSchema,
  tool_calls_match: toolCallsMatch,
};
