import type { PeriodicOptions } from "../callback/periodic-callback.ts";
import type { Trigger } from "@periodic-eval/contracts";
import type { AlignmentOptions } from "../evaluations/alignment/options.ts";
import type { CapabilityOptions } from "../evaluations/capability/options.ts";
import type { LeakageOptions } from "../evaluations/leakage/options.ts";
import type { TraitOptions } from "../evaluations/leakage/traits.ts";
import { defaultPersonas, parsePersonas, type Persona } from "../evaluations/prompting/personas.ts";
import { placesIn } from "@periodic-eval/data";
import { configError } from "@periodic-eval/contracts/options";
import {
  atPercents,
  atSteps,
  everyEpochs,
  everyPercent,
  everySeconds,
  everySteps,
  timesPerPhase,
} from "../schedule/triggers.ts";
import { defaultPercents, type PhaseEvalConfig } from "./config-schema.ts";
import { judgeOptions, openBlockJudge, type OpenJudge } from "./judge.ts";
import { blockName, type ParsedBlock } from "./parse-config.ts";

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
  judgeOptions(block);
  return {
    judge: () => openBlockJudge(block, openJudge),
    preset: config.alignment_preset,
    samples: config.alignment_num_samples,
    ...(maxNewTokens !== null && { sampling: { maxNewTokens } }),
    ...(questions !== null && { questions }),
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

/** Returns the triggers of an entry of `evaluations`: its own percents and schedule, else those of the block. */
export function scheduleOfEntry(
  block: PhaseEvalConfig,
  { every_percent: percent, schedule }: PhaseEvalConfig["evaluations"][number],
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
