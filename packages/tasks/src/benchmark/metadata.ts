import { PeriodicEvalError } from "@periodic-eval/core";
import { nearest, quoteValue } from "@periodic-eval/core/internal";
import { readYaml } from "@periodic-eval/core/evaluations";
import type { YAMLError } from "yaml";
import type { Mistakes } from "./mistakes.ts";
import type { TaskDefaults } from "./task-line.ts";
import { splits, type Split } from "./benchmark-task.ts";
import { verifierSpec, type VerifierSpec } from "./verifiers/verifier-spec.ts";

export interface BenchmarkMetadata extends TaskDefaults {
  readonly name: string;
  readonly version: string;
}

const known = ["name", "version", "description", "split", "verifier"];

/** What `metadata.yaml` says, and its text. What is wrong with it is among the mistakes, and has a stand-in here. */
export async function readMetadata(
  path: string,
  mistakes: Mistakes,
): Promise<{ readonly metadata: BenchmarkMetadata; readonly text: string }> {
  const { value, text } = await readYaml(path, "benchmark").catch((error: unknown) => {
    throw withLine(error, path);
  });
  const nothing = { metadata: { name: "", version: "", split: null, verifier: null }, text };
  const lineOf = await linesOf(text);
  const at = (key: string) => `${path}:${lineOf(key)}`;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    mistakes.add({
      where: path,
      got: quoteValue(value),
      expected: `a map with name and version (${known.join(", ")})`,
      fix: "Write `name: …` and `version: …`.",
    });
    return nothing;
  }
  const fields = value as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(fields)) {
    if (known.includes(key)) continue;
    const close = nearest(key, known);
    mistakes.add({
      where: at(key),
      got: `the unknown key "${key}"`,
      expected: `some of ${known.join(", ")}`,
      fix: close === null ? "Remove it." : `Did you mean "${close}"?`,
    });
  }
  const text_ = (key: "name" | "version" | "description"): string => {
    const given = fields[key];
    if (typeof given === "string" && given.trim() !== "") return given;
    const got = key in fields ? `${key} = ${quoteValue(given)}` : `no ${key}`;
    const fix = given === undefined ? `Add \`${key}: …\`.` : "Write it in quotes.";
    mistakes.add({ where: key in fields ? at(key) : path, got, expected: `${key}: a text`, fix });
    return "";
  };
  if ("description" in fields) text_("description");
  const metadata = { name: text_("name"), version: text_("version") };
  return { metadata: { ...metadata, ...defaultsOf(fields, at, mistakes) }, text };
}

function defaultsOf(
  { split, verifier }: Readonly<Record<string, unknown>>,
  at: (key: string) => string,
  mistakes: Mistakes,
): TaskDefaults {
  if (split !== undefined && !splits.includes(split as Split)) {
    const expected = `split: ${splits.join(" or ")}`;
    mistakes.add({
      where: at("split"),
      got: quoteValue(split),
      expected,
      fix: "Correct it, or leave it out.",
    });
  }
  let spec: VerifierSpec | null = null;
  try {
    if (verifier !== undefined) spec = verifierSpec(verifier);
  } catch (error) {
    mistakes.keep(error, at("verifier"));
  }
  return { split: (split as Split | undefined) ?? null, verifier: spec };
}

/** An error of YAML knows its line, and says it in words. */
function withLine(error: unknown, path: string): unknown {
  if (!PeriodicEvalError.is(error)) return error;
  const { code, where, got, expected, fix, cause } = error;
  const line = (cause as Partial<YAMLError> | undefined)?.linePos?.[0].line;
  if (where !== path || line === undefined) return error;
  return new PeriodicEvalError({ code, where: `${path}:${line}`, got, expected, fix, cause });
}

/** On which line a key of the outermost map stands. */
async function linesOf(text: string): Promise<(key: string) => number> {
  const { isMap, isScalar, LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: lines });
  return (key) => {
    const pair = isMap(contents)
      ? contents.items.find((one) => isScalar(one.key) && one.key.value === key)
      : undefined;
    return lines.linePos((isScalar(pair?.key) ? pair.key.range?.[0] : null) ?? 0).line;
  };
}
