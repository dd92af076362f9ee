import type { AnyEvaluation } from "@periodic-eval/contracts";
import { withItems } from "../evaluations/kit/with-items.ts";
import { pathText, fromWritten, type Written } from "@periodic-eval/contracts/options";
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
  "sampling.maxNewTokens": "alignment_max_tokens",
  personas: "personas",
  system: "system",
};
export const marginKeys: OptionKeys = { probes: "margin" };
export const klKeys: OptionKeys = { ...capabilityKeys, of: "kl" };
export const leakageKeys: OptionKeys = {
  marker: "leakage_marker_token",
  "marker.regex": "leakage_marker_regex",
  "sampling.maxNewTokens": "leakage_max_tokens",
  completions: "leakage_num_completions",
  personas: "personas",
  questions: "leakage_questions",
  source: "leakage_source",
};

/** Returns where a block sets the options of a callback. */
export const optionsIn = (block: ParsedBlock, keys: OptionKeys): Written => ({
  where: (path) => `${blockName}${pathText(path)}`,
  pathOf(option) {
    const length = [2, 1].find((count) => Object.hasOwn(keys, option.slice(0, count).join(".")));
    if (length === undefined) return null;
    const key = keys[option.slice(0, length).join(".")]!;
    // The default questions are asked by the key that turns the callback on.
    const isDefault = key === "questions" && !block.sets("questions");
    return [...block.pathOf(isDefault ? (keys["of"] ?? "capability") : key), ...option.slice(length)];
  },
  nameOf: (name) =>
    keys[name] ?? keys[Object.keys(keys).find((one) => one.endsWith(`.${name}`)) ?? ""] ?? null,
});

/** Returns the evaluation of a block. Errors of its `items`, which read files, are about the block's keys. */
export const placingItems = (
  evaluation: AnyEvaluation,
  block: ParsedBlock,
  keys: OptionKeys,
): AnyEvaluation =>
  withItems(evaluation, (model) => fromWritten(optionsIn(block, keys), () => evaluation.items(model)));
