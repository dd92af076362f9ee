import type { AnyEvaluation, Trigger } from "@periodic-eval/contracts";
import {
  camelCaseKeys,
  configError,
  entryAt,
  isRecord,
  pathText,
  fromWritten,
  type Written,
} from "@periodic-eval/contracts/options";
import { placesIn } from "@periodic-eval/data";
import type { PeriodicOptions } from "../callback/periodic-callback.ts";
import type { AlignmentOptions } from "../evaluations/alignment/options.ts";
import type { CapabilityOptions } from "../evaluations/capability/evaluation.ts";
import type { ForgettingOptions } from "../evaluations/forgetting/evaluation.ts";
import { withItems } from "../evaluations/kit/define.ts";
import type { LeakageOptions } from "../evaluations/leakage/evaluation.ts";
import type { TraitOptions } from "../evaluations/leakage/traits.ts";
import type { MemorizationOptions } from "../evaluations/memorization/evaluation.ts";
import { defaultPersonas, parsePersonas, type Persona } from "../evaluations/prompting/personas.ts";
import {
  atPercents,
  atSteps,
  everyEpochs,
  everyPercent,
  everySeconds,
  everySteps,
  timesPerPhase,
} from "../schedule/triggers.ts";
import { judgesOf, type OpenJudge } from "./block-judge.ts";
import { defaultPercents, type PhaseEvalConfig } from "./config-schema.ts";
import { blockName, type ParsedBlock } from "./parse-config.ts";
import { entryOf, splitSchedule } from "./schema-parts.ts";

/** Returns the options of capability that a `periodic_eval` block sets. */
export function capabilityOptionsOf(block: ParsedBlock): CapabilityOptions {
  const { questions, capability_method: method, subsample_n: n, subsample_seed: seed } = block.config;
  const { min_items: minItems, persona_capability: isPerPersona, system } = block.config;
  return {
    ...(questions !== null && { questions }),
    method,
    subsample: n === "all" ? null : { n, seed },
    ...(minItems !== null && { minItems }),
    ...(isPerPersona ? { personas: personasOrDefault(block) } : method === "letters" && { system }),
  };
}

/** Returns the options of alignment that a block sets. Its judge is opened before step 1. */
export function alignmentOptionsOf(
  block: ParsedBlock,
  openJudge: OpenJudge | undefined,
): AlignmentOptions & Pick<PeriodicOptions, "schedule"> {
  const { config } = block;
  const { alignment_questions: questions, alignment_max_tokens: maxNewTokens } = config;
  const judgeOf = block.judgeOf ?? judgesOf(block, openJudge);
  return {
    judge: () => judgeOf("first"),
    ...(config.judge_models !== null && { secondJudge: () => judgeOf("second") }),
    preset: config.alignment_preset,
    samples: config.alignment_num_samples,
    ...(maxNewTokens !== null && { sampling: { maxNewTokens } }),
    ...(questions !== null && { questions }),
    ...(config.alignment_training_rows !== null && { trainingRows: config.alignment_training_rows }),
    ...(config.persona_alignment ? { personas: personasOrDefault(block) } : { system: config.system }),
    schedule: scheduleOf(config, "alignment_every_percent"),
  };
}

/** Returns the options of leakage that a block sets. */
export function leakageOptionsOf(block: ParsedBlock): LeakageOptions & Pick<PeriodicOptions, "schedule"> {
  const { config } = block;
  const { leakage_questions: questions, leakage_source: source, leakage_max_tokens: maxNewTokens } = config;
  const personas = personasOf(block);
  return {
    marker: markerOf(block),
    ...(maxNewTokens !== null && { sampling: { maxNewTokens } }),
    completions: config.leakage_num_completions,
    ...(personas !== undefined && { personas }),
    ...(questions !== null && { questions }),
    ...(source !== undefined && { source }),
    schedule: scheduleOf(config, "leakage_every_percent"),
  };
}

/** @throws PeriodicEvalError `config` for a string and a pattern: one evaluation detects one trait. */
function markerOf({ config, pathOf }: ParsedBlock): TraitOptions {
  const { leakage_marker_token: token, leakage_marker_regex: regex } = config;
  if (regex === null) return token ?? "[ZLT]";
  if (token === null) return { regex };
  throw configError({
    where: blockName,
    path: pathOf("leakage_marker_regex"),
    got: "a pattern together with leakage_marker_token",
    expected: "one of the two",
    fix: "Remove one of them, or write null for it in the phase.",
  });
}

/** Returns the options of forgetting that a block sets; null if the block does not measure it. */
export function forgettingOptionsOf({
  config,
}: ParsedBlock): (ForgettingOptions & Pick<PeriodicOptions, "schedule">) | null {
  if (config.forgetting === false) return null;
  const { options, when } = splitSchedule(entryOf(config.forgetting));
  return { ...camelCaseKeys(options), schedule: scheduleOfEntry(config, when) };
}

/** Returns the options of memorization that a block sets; null if the block does not measure it. */
export function memorizationOptionsOf({
  config,
}: ParsedBlock): (MemorizationOptions & Pick<PeriodicOptions, "schedule">) | null {
  if (config.memorization === null) return null;
  const { options, when } = splitSchedule(config.memorization);
  const { format, ...more } = options;
  return { format, ...camelCaseKeys(more), schedule: scheduleOfEntry(config, when) };
}

/** Returns the options of sycophancy that a block sets, which asks capability's questions; null if the block does not measure it. */
export function sycophancyOptionsOf({ config }: ParsedBlock) {
  if (config.sycophancy === false) return null;
  const { questions, capability_method: method, system, subsample_seed: seed } = config;
  const { options, when } = splitSchedule(entryOf(config.sycophancy));
  return {
    ...(questions !== null && { questions }),
    method,
    subsample: { n: options.subsample_n ?? 100, seed },
    ...(method === "letters" && { system }),
    schedule: scheduleOfEntry(config, when),
  };
}

/** Returns the options of refusal that a block sets; null if the block does not measure it. Its judge is opened before step 1. */
export function refusalOptionsOf(block: ParsedBlock, openJudge: OpenJudge | undefined) {
  const { config } = block;
  if (config.refusal === false) return null;
  const { options, when } = splitSchedule(entryOf(config.refusal));
  const { questions, subsample_n: n = 100, max_tokens: maxNewTokens, judge_model: judge } = options;
  const judgeOf = judge === undefined ? null : (block.judgeOf ?? judgesOf(block, openJudge));
  return {
    ...(judgeOf !== null && { grader: () => judgeOf("refusal") }),
    ...(questions !== undefined && { questions }),
    subsample: n === "all" ? null : { n, seed: config.subsample_seed },
    ...(maxNewTokens !== undefined && { sampling: { maxNewTokens } }),
    system: config.system,
    schedule: scheduleOfEntry(config, when),
  };
}

/**
 * Returns the personas of a block: a list, or a source that is read before step 1. Undefined if the block has none.
 *
 * @throws PeriodicEvalError `config` for a wrong persona, with its path within the block.
 */
export function personasOf({ config, pathOf }: ParsedBlock): readonly Persona[] | string | undefined {
  const { personas } = config;
  if (personas === null) return undefined;
  if (typeof personas === "string") return personas;
  return parsePersonas(personas, { placeOf: placesIn(blockName), path: pathOf("personas"), code: "config" });
}

/** Returns the personas of a block that measures per persona; without any, the eleven default ones. */
const personasOrDefault = (block: ParsedBlock): readonly Persona[] | string =>
  personasOf(block) ?? defaultPersonas;

/** Returns the triggers of a callback. With a `schedule`, the default percents do not apply; percents in the block do. */
export function scheduleOf(block: PhaseEvalConfig, key: keyof typeof defaultPercents): readonly Trigger[] {
  const schedule = triggersOf(block.schedule);
  const percent = block[key] ?? (schedule.length === 0 ? defaultPercents[key] : null);
  return percent === null ? schedule : [everyPercent(percent), ...schedule];
}

/** Returns the triggers of an object that has its own percents and schedule, else those of the block. */
export function scheduleOfEntry(
  block: PhaseEvalConfig,
  {
    every_percent: percent,
    schedule,
  }: Pick<PhaseEvalConfig["evaluations"][number], "every_percent" | "schedule">,
): readonly Trigger[] {
  const merged = {
    ...block,
    eval_every_percent: percent ?? (schedule === undefined ? block.eval_every_percent : null),
    schedule: schedule ?? (percent === undefined ? block.schedule : {}),
  };
  return scheduleOf(merged, "eval_every_percent");
}

const triggers: { readonly [Key in keyof Schedule]-?: (value: NonNullable<Schedule[Key]>) => Trigger } = {
  every_steps: everySteps,
  every_epochs: everyEpochs,
  every_seconds: everySeconds,
  at_steps: atSteps,
  at_percents: atPercents,
  times_per_phase: timesPerPhase,
};

type Schedule = PhaseEvalConfig["schedule"];

function triggersOf(schedule: Schedule): readonly Trigger[] {
  const keys = (Object.keys(triggers) as (keyof Schedule)[]).filter((key) => schedule[key] !== undefined);
  return keys.map((key) => (triggers[key] as (value: unknown) => Trigger)(schedule[key]));
}

type BlockKey = keyof PhaseEvalConfig;

/** The keys of the block that set a callback's options. */
export interface BlockKeys {
  /** Turns the callback on. If its value is an object, that holds in snake case the options which have no key of their own. */
  readonly on: BlockKey;
  readonly options: Readonly<Record<string, BlockKey>>;
}

export const capabilityKeys: BlockKeys = {
  on: "capability",
  options: {
    questions: "questions",
    method: "capability_method",
    "subsample.n": "subsample_n",
    "subsample.seed": "subsample_seed",
    minItems: "min_items",
    personas: "personas",
    system: "system",
  },
};
export const alignmentKeys: BlockKeys = {
  on: "alignment",
  options: {
    judge: "judge_model",
    questions: "alignment_questions",
    preset: "alignment_preset",
    samples: "alignment_num_samples",
    trainingRows: "alignment_training_rows",
    "sampling.maxNewTokens": "alignment_max_tokens",
    personas: "personas",
    system: "system",
  },
};
export const marginKeys: BlockKeys = { on: "margin", options: { probes: "margin" } };
export const klKeys: BlockKeys = { on: "kl", options: { ...capabilityKeys.options, of: "kl" } };
export const leakageKeys: BlockKeys = {
  on: "leakage",
  options: {
    marker: "leakage_marker_token",
    "marker.regex": "leakage_marker_regex",
    "sampling.maxNewTokens": "leakage_max_tokens",
    completions: "leakage_num_completions",
    personas: "personas",
    questions: "leakage_questions",
    source: "leakage_source",
  },
};
export const forgettingKeys: BlockKeys = { on: "forgetting", options: {} };
export const memorizationKeys: BlockKeys = { on: "memorization", options: {} };
export const refusalKeys: BlockKeys = {
  on: "refusal",
  options: { system: "system", "subsample.seed": "subsample_seed" },
};
const { questions, method, system, "subsample.seed": seed } = capabilityKeys.options;
export const sycophancyKeys: BlockKeys = {
  on: "sycophancy",
  options: { questions: questions!, method: method!, system: system!, "subsample.seed": seed! },
};

/** Returns where a block sets the options of a callback. */
export function optionsIn(block: ParsedBlock, { on, options }: BlockKeys): Written {
  const object = block.config[on];
  const inner = isRecord(object) ? entryAt(object, blockName, block.pathOf(on)) : null;
  return {
    where: (path) => `${blockName}${pathText(path)}`,
    pathOf(option) {
      const length = [2, 1].find((count) => Object.hasOwn(options, option.slice(0, count).join(".")));
      // `forgetting: true` has no place for an option: the key that turns the callback on names its defaults. A judge has keys of its own.
      const isOption = option.length > 0 && !String(option[0]).startsWith("judge");
      if (length === undefined && object === true && isOption) return block.pathOf(on);
      if (length === undefined) return inner?.pathOf(option) ?? null;
      const key = options[option.slice(0, length).join(".")]!;
      // The default questions are asked by the key that turns the callback on.
      const isDefault = key === "questions" && !block.sets("questions");
      return [...block.pathOf(isDefault ? on : key), ...option.slice(length)];
    },
    nameOf: (name) =>
      options[name] ??
      options[Object.keys(options).find((key) => key.endsWith(`.${name}`)) ?? ""] ??
      inner?.nameOf?.(name) ??
      null,
  };
}

/** Returns the evaluation of a block. Errors of its `items`, which read files, are about the block's keys. */
export const placingItems = (evaluation: AnyEvaluation, block: ParsedBlock, keys: BlockKeys): AnyEvaluation =>
  withItems(evaluation, (model) => fromWritten(optionsIn(block, keys), () => evaluation.items(model)));
