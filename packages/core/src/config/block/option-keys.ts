import { type AnyEvaluation, PeriodicEvalError, type ValuePath } from "@periodic-eval/contracts";
import { withItems } from "../../evaluations/kit/with-items.ts";
import { changedError, pathText, isNotCached, respelt } from "@periodic-eval/contracts/options";
import type { PhaseEvalConfig } from "./config-schema.ts";
import { blockName, type ParsedBlock } from "./parse-config.ts";

/** The keys of the block that set a callback's options. The key `defaultQuestions` asks for the default questions. */
export type OptionKeys = Readonly<Record<string, keyof PhaseEvalConfig>>;

const defaultQuestions = "default questions";

export const capabilityKeys: OptionKeys = {
  [defaultQuestions]: "capability",
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
export const klKeys: OptionKeys = { ...capabilityKeys, of: "kl", [defaultQuestions]: "kl" };
export const leakageKeys: OptionKeys = {
  marker: "leakage_marker_token",
  "marker.regex": "leakage_marker_regex",
  "sampling.maxNewTokens": "leakage_max_tokens",
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
export function atKeys<T>(make: () => T, block: ParsedBlock, keys: OptionKeys): T {
  try {
    return make();
  } catch (cause) {
    throw errorAtKey(cause, block, keys);
  }
}

/** Returns the evaluation of a block. Its `items`, which read files, place errors about options as `atKeys` does. */
export function placingItems(evaluation: AnyEvaluation, block: ParsedBlock, keys: OptionKeys): AnyEvaluation {
  return withItems(evaluation, async (model) => {
    try {
      return await evaluation.items(model);
    } catch (cause) {
      throw PeriodicEvalError.is(cause, "config")
        ? errorAtKey(cause, block, keys)
        : sourceErrorAtKey(cause, block, keys);
    }
  });
}

/** The path of such an error is within a file, unless its detail names the option whose source cannot be read. */
function sourceErrorAtKey(error: unknown, block: ParsedBlock, keys: OptionKeys): unknown {
  if (!PeriodicEvalError.is(error)) return error;
  const { detail } = error;
  const option = detail?.kind === "option" || detail?.kind === "not-cached" ? detail.option : null;
  const key = keys[option?.name ?? defaultQuestions];
  if (option === null || key === undefined) return error;
  const isDefault = option.name === null;
  const spelt = isNotCached(error) ? respelt(error, [`${isDefault ? "questions" : key}: FILE`]) : error;
  if (isDefault && !block.sets(key)) return spelt;
  const path = block.pathOf(key);
  const rest = isDefault ? `, ${error.where}` : error.where.slice(option.where.length);
  return changedError(spelt, { where: `${blockName}${pathText(path)}${rest}`, path });
}

function errorAtKey(error: unknown, { pathOf }: ParsedBlock, keys: OptionKeys): unknown {
  if (!PeriodicEvalError.is(error)) return error;
  const found = [2, 1]
    .map((length) => ({ key: keys[error.path.slice(0, length).join(".")], rest: error.path.slice(length) }))
    .find(({ key }) => key !== undefined);
  if (found === undefined) return error;
  const path: ValuePath = [...pathOf(found.key!), ...found.rest];
  return changedError(error, { where: `${blockName}${pathText(path)}`, path });
}
