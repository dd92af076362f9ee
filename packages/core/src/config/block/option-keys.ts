import { PeriodicEvalError, type ValuePath } from "../../errors.ts";
import { pathText } from "../../internal/config-error.ts";
import type { PhaseEvalConfig } from "./config-schema.ts";
import { blockName, type ParsedBlock } from "./parse-config.ts";

/** The keys of the block that set a callback's options. */
export type OptionKeys = Readonly<Record<string, keyof PhaseEvalConfig>>;

export const capabilityKeys: OptionKeys = {
  questions: "questions",
  method: "capability_method",
  "subsample.n": "subsample_n",
  "subsample.seed": "subsample_seed",
  minItems: "min_items",
  personas: "personas",
  system: "system",
};
export const alignmentKeys: OptionKeys = {
  judge: "judge_model",
  questions: "alignment_questions",
  preset: "alignment_preset",
  samples: "alignment_num_samples",
  personas: "personas",
  system: "system",
};
export const marginKeys: OptionKeys = { probes: "margin" };
export const klKeys: OptionKeys = { of: "kl" };
export const leakageKeys: OptionKeys = {
  marker: "leakage_marker_token",
  completions: "leakage_num_completions",
  personas: "personas",
  questions: "leakage_questions",
  source: "leakage_source",
};

/**
 * Runs `make`. An error about an option that a key of the block sets becomes an error at that key.
 *
 * @throws PeriodicEvalError with `path` within the block; the errors of `make` about other options unchanged.
 */
export function atKeys<T>(make: () => T, { pathOf }: ParsedBlock, keys: OptionKeys): T {
  try {
    return make();
  } catch (cause) {
    if (!PeriodicEvalError.is(cause)) throw cause;
    const found = [2, 1]
      .map((length) => ({ key: keys[cause.path.slice(0, length).join(".")], rest: cause.path.slice(length) }))
      .find(({ key }) => key !== undefined);
    if (found === undefined) throw cause;
    const path: ValuePath = [...pathOf(found.key!), ...found.rest];
    const { code, got, expected, fix } = cause;
    const where = `${blockName}${pathText(path)}`;
    throw new PeriodicEvalError({ code, where, path, got, expected, fix, cause });
  }
}
