import { didYouMean, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import { readYaml } from "@periodic-eval/data";
import type { Mistakes } from "./mistakes.ts";
import type { TaskDefaults } from "./task-line.ts";
import { splits, type Split } from "./benchmark-task.ts";
import { verifierSpec, type VerifierSpec } from "./verifiers/verifier-spec.ts";

export interface BenchmarkMetadata extends TaskDefaults {
  readonly name: string;
  readonly version: string;
}

const known = ["name", "version", "description", "split", "verifier"];

/** Reads `metadata.yaml`. Adds wrong values to the mistakes, and returns placeholders for them. */
export async function readMetadata(
  path: string,
  mistakes: Mistakes,
): Promise<{ readonly metadata: BenchmarkMetadata; readonly text: string }> {
  const { value, text } = await readYaml(path, "benchmark");
  const placeholder = { metadata: { name: "", version: "", split: null, verifier: null }, text };
  const lineOf = await linesOf(text);
  const at = (key: string) => `${path}:${lineOf(key)}`;
  if (!isRecord(value)) {
    mistakes.add({
      where: path,
      got: quoteValue(value),
      expected: `an object with name and version (${known.join(", ")})`,
      fix: "Write `name: …` and `version: …`.",
    });
    return placeholder;
  }
  const fields = value;
  for (const key of Object.keys(fields)) {
    if (known.includes(key)) continue;
    mistakes.add({
      where: at(key),
      got: `the unknown key "${key}"`,
      expected: `some of ${known.join(", ")}`,
      fix: didYouMean(key, known) ?? "Remove it.",
    });
  }
  const readText = (key: "name" | "version" | "description"): string => {
    const given = fields[key];
    if (typeof given === "string" && given.trim() !== "") return given;
    const got = key in fields ? `${key} = ${quoteValue(given)}` : `no ${key}`;
    const fix = given === undefined ? `Add \`${key}: …\`.` : "Write it in quotes.";
    mistakes.add({ where: key in fields ? at(key) : path, got, expected: `${key}: a string`, fix });
    return "";
  };
  if ("description" in fields) readText("description");
  const metadata = { name: readText("name"), version: readText("version") };
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

/** Returns a function that gives the line of a top-level key. */
async function linesOf(text: string): Promise<(key: string) => number> {
  const { isMap, isScalar, LineCounter, parseDocument } = await import("yaml");
  const lines = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: lines, uniqueKeys: false });
  return (key) => {
    const pair = isMap(contents)
      ? contents.items.find((one) => isScalar(one.key) && one.key.value === key)
      : undefined;
    return lines.linePos((isScalar(pair?.key) ? pair.key.range?.[0] : null) ?? 0).line;
  };
}
