import { isAbsolute, normalize } from "node:path";
import { filledText, isFilled, isRecord, parseOptions } from "@periodic-eval/contracts/options";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import * as z from "zod";
import { jsonSchema, toolCallsMatch } from "./json-in-text.ts";
import { numeric } from "./numeric.ts";
import { contains, exactMatch, regexMatch } from "./text-match.ts";
import type { VerifierKind } from "./verifier.ts";

/** How a completion is checked: by a built-in verifier, or by an export of a module in the benchmark's folder. */
export type VerifierSpec =
  | { readonly name: string; readonly args: VerifierArgs }
  | { readonly module: string; readonly export: string; readonly args: VerifierArgs };

/** The built-in verifiers, by the name that tasks use. */
export const builtInVerifiers: Readonly<Record<string, VerifierKind>> = {
  exact_match: exactMatch,
  contains,
  regex_match: regexMatch,
  numeric,
  json_schema: jsonSchema,
  tool_calls_match: toolCallsMatch,
};

const args = z
  .record(z.string(), z.json(), "an object")
  .default({})
  .meta({ fix: "Write { argument: value }." });
const names = Object.keys(builtInVerifiers);
const nameSchema = z.enum(names, `one of ${names.join(", ")}, or { module, export }`);
const namedSchema = z.strictObject(
  { name: nameSchema, args },
  "a verifier's name, { name, args } or { module, export, args }",
);
const moduleSchema = z.strictObject({
  // Its code is copied and hashed with the benchmark.
  module: z
    .custom<string>(
      (path) => isFilled(path) && !isAbsolute(path) && !normalize(path).startsWith(".."),
      "a path relative to the benchmark's folder, and inside it",
    )
    .meta({ fix: 'Copy the module into the folder, and write "./check.js".' }),
  export: filledText("the name of an export of the module"),
  args,
});

/**
 * Parses a verifier of a task or of `metadata.yaml`: a name, `{ name, args }` or `{ module, export, args }`.
 *
 * @throws PeriodicEvalError whose `where` is the key; the caller adds file and line.
 */
export function verifierSpec(value: unknown): VerifierSpec {
  if (typeof value === "string") return { name: parseOptions("verifier", nameSchema, value), args: {} };
  const isModule = isRecord(value) && ("module" in value || "export" in value);
  return parseOptions("verifier", isModule ? moduleSchema : namedSchema, value);
}
