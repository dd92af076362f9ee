import type { Json } from "../../contracts/json.ts";
import type { Snapshot } from "../../contracts/snapshot.ts";
import { isRecord } from "../../internal/is-record.ts";
import { canonicalJson } from "../../random/hash.ts";

/** The parts of a snapshot that say how its evaluation was set up. */
type Setup = Pick<Snapshot, "evaluation" | "evaluation_version" | "on"> & {
  readonly provenance: Pick<Snapshot["provenance"], "evaluation" | "tokenizer">;
};

/**
 * Describes how the setups of two measurements differ. Comparing such measurements would blame training for the difference.
 *
 * @param except A difference that is intended.
 */
export function differencesOf(there: Setup, here: Setup, except: "on" | null = null): string[] {
  const pairs = {
    "the evaluation": [there.evaluation, here.evaluation],
    "the version": [there.evaluation_version, here.evaluation_version],
    "the model (on)": except === "on" ? [] : [there.on, here.on],
    "the tokenizer": [there.provenance.tokenizer, here.provenance.tokenizer],
  };
  const [was, is] = [optionsOf(there), optionsOf(here)];
  const options = [...new Set([...Object.keys(was), ...Object.keys(is)])].filter(
    (name) => jsonText(was[name]) !== jsonText(is[name]),
  );
  return [
    ...Object.entries(pairs)
      .filter(([, [one, other]]) => one !== other)
      .map(([what, [one, other]]) => `${what} ${one ?? "unknown"} (here ${other ?? "unknown"})`),
    ...(options.length === 0 ? [] : [`other options (${options.join(", ")})`]),
  ];
}

const jsonText = (value: Json | undefined) => (value === undefined ? null : canonicalJson(value));

/** Leaves out the keys that only choose or show items: two measurements are paired over the items that both have. */
function optionsOf({ provenance: { evaluation } }: Setup): Readonly<Record<string, Json>> {
  if (!isRecord(evaluation)) return { provenance: evaluation };
  const { subsample: _, example_prompt: __, ...options } = evaluation as Readonly<Record<string, Json>>;
  return options;
}
