import { PeriodicEvalError } from "../errors.ts";
import type { AnyEvaluation } from "../contracts/evaluation.ts";
import { capabilityEvaluation, type CapabilityOptions } from "../evaluations/capability/evaluation.ts";
import {
  defaultPersonas,
  personasOfValue,
  readPersonas,
  type Persona,
} from "../evaluations/leakage/personas.ts";
import type { JudgePrice } from "../grading/judge/budget.ts";
import type { Grader } from "../contracts/grading.ts";
import type { Awaitable } from "../contracts/json.ts";
import type { VerdictCache } from "../grading/judge/verdict-cache.ts";
import {
  atPercents,
  atSteps,
  everyEpochs,
  everyPercent,
  everySeconds,
  everySteps,
  timesPerPhase,
} from "../schedule/triggers.ts";
import type { Trigger } from "../contracts/schedule.ts";
import type { SessionOptions } from "../contracts/session.ts";
import { PeriodicAlignmentCallback } from "../evaluations/alignment/callback.ts";
import { usualPercents, type klSources, type PhaseEvalConfig } from "./config-schema.ts";
import { configuredCallbacks, type EvaluationRegistry } from "./configured-evaluations.ts";
import { PeriodicKLCallback } from "../evaluations/kl/callback.ts";
import { PeriodicLeakageCallback } from "../evaluations/leakage/callback.ts";
import { PeriodicMarginCallback } from "../evaluations/margin/callback.ts";
import { periodicEvalConfig, placeOfKey } from "./parse-config.ts";
import type { PeriodicCallback } from "../callback/periodic.ts";
import { PeriodicCapabilityCallback } from "../evaluations/capability/callback.ts";

/** What a configuration says of the judge, as `openJudge` of @periodic-eval/remote takes it. */
export interface ConfiguredJudge {
  readonly method: "json" | "logprob";
  readonly maxCalls?: number;
  readonly maxCost?: number;
  readonly price?: JudgePrice;
  /** Of the folder `judge_cache`. */
  readonly cache?: VerdictCache;
}

export interface BuildOptions {
  readonly phase: string;
  /** All phases of the run: overrides of another are then refused, with the nearest name. */
  readonly phases?: readonly string[];
  /**
   * Opens the judge that alignment asks: `openJudge` of @periodic-eval/remote, say. `model` is the configuration's
   * `judge_model`, null where it has none.
   */
  readonly openJudge?: (model: string | null, options: ConfiguredJudge) => Awaitable<Grader>;
  /** What makes the entries of `evaluations`: `evaluationsOf(tasks)` of @periodic-eval/tasks, say. */
  readonly evaluations?: EvaluationRegistry;
}

/** All that a `periodic_eval` block says of one phase. */
export interface PeriodicEval {
  readonly callbacks: readonly PeriodicCallback[];
  /** To be spread into the session's options, or given as `session` to a trainer. */
  readonly session: Pick<SessionOptions, "baseline" | "familywise" | "budget" | "layout">;
  /** Where true, give the session a `saveAtFiring` that keeps the adapter: only the caller knows how it is saved. */
  readonly saveAdapterAtFiring: boolean;
}

/** Where the default capability callback looks for questions. */
const defaultQuestions = "arc_challenge/test.jsonl";

/**
 * What a `periodic_eval` block asks for in a phase. The block may stand by itself, under `periodic_eval`, or under
 * `eval.periodic_eval`; what it leaves out has its default. No callbacks where it is not enabled.
 *
 * @throws PeriodicEvalError `config` for a wrong block, overrides of a phase that is not in `phases`, alignment without
 * a judge, or an evaluation that nothing makes; `data` for a file of personas that cannot be read.
 */
export async function buildPeriodicEval(config: unknown, options: BuildOptions): Promise<PeriodicEval> {
  const block = periodicEvalConfig(config, options.phase, options.phases);
  const placeOf = (key: keyof PhaseEvalConfig) => placeOfKey(config, options.phase, key);
  return {
    callbacks: block.enabled ? await callbacksOf(block, { ...options, placeOf }) : [],
    session: sessionOf(block),
    saveAdapterAtFiring: block.save_adapter_at_firing,
  };
}

/** The callbacks of `buildPeriodicEval` by themselves. */
export const buildPeriodicCallbacks = async (
  config: unknown,
  options: BuildOptions,
): Promise<readonly PeriodicCallback[]> => (await buildPeriodicEval(config, options)).callbacks;

/** Where a key's value stands: the phase's own block, or that of all. */
interface Places {
  readonly placeOf: (key: keyof PhaseEvalConfig) => string;
}

async function callbacksOf(
  block: PhaseEvalConfig,
  options: BuildOptions & Places,
): Promise<readonly PeriodicCallback[]> {
  const when = (key: keyof typeof usualPercents) => ({ schedule: scheduleOf(block, key) });
  const personas = await personasOf(block, options.placeOf("personas"));
  const capability = capabilityOptions(block, personas);
  const isOptional = { optional: block.questions === null };
  const callbacks: PeriodicCallback[] = [];
  if (block.capability)
    callbacks.push(
      new PeriodicCapabilityCallback({ ...capability, ...when("eval_every_percent"), ...isOptional }),
    );
  if (block.alignment)
    callbacks.push(await alignmentCallback(block, personas, when("alignment_every_percent"), options));
  if (block.leakage) {
    const { leakage_questions: questions, leakage_source: source } = block;
    callbacks.push(
      new PeriodicLeakageCallback({
        marker: block.leakage_marker_token,
        completions: block.leakage_num_completions,
        ...(personas !== null && { personas }),
        ...(questions !== null && { questions }),
        ...(source !== null && { source }),
        ...when("leakage_every_percent"),
      }),
    );
  }
  if (block.margin !== null)
    callbacks.push(new PeriodicMarginCallback({ probes: block.margin, ...when("eval_every_percent") }));
  for (const source of klSourcesOf(block)) {
    const schedule = when(percentOf[source]);
    if (source === "capability")
      callbacks.push(
        new PeriodicKLCallback({ of: capabilityEvaluation(capability), ...schedule, ...isOptional }),
      );
    else callbacks.push(new PeriodicKLCallback({ of: askedOf(callbacks, source, options), ...schedule }));
  }
  const further = await configuredCallbacks(block.evaluations, {
    place: options.placeOf("evaluations"),
    kinds: options.evaluations ?? {},
    scheduleOf: (entry) => scheduleOf(withOwn(block, entry), "eval_every_percent"),
    taken: callbacks.map(({ id }) => id),
  });
  return [...callbacks, ...further];
}

const percentOf = {
  capability: "eval_every_percent",
  alignment: "alignment_every_percent",
  leakage: "leakage_every_percent",
  margin: "eval_every_percent",
} as const satisfies Record<(typeof klSources)[number], keyof typeof usualPercents>;

const klSourcesOf = ({ kl }: PhaseEvalConfig) =>
  typeof kl === "boolean" ? (kl ? (["capability"] as const) : []) : [...new Set(kl)];

/** @throws PeriodicEvalError `config` where the block does not measure it: it says nowhere what it asks. */
function askedOf(callbacks: readonly PeriodicCallback[], source: string, { placeOf }: Places): AnyEvaluation {
  const callback = callbacks.find(({ id }) => id === source);
  if (callback !== undefined) return callback.asks[0]!;
  throw new PeriodicEvalError({
    code: "config",
    where: placeOf("kl"),
    got: `"${source}", which is not measured`,
    expected: `capability, or of what is measured: ${callbacks.map(({ id }) => id).join(", ") || "nothing"}`,
    fix: `Leave "${source}" out, or have it measured.`,
  });
}

function sessionOf({ baseline, familywise, budget, layout }: PhaseEvalConfig): PeriodicEval["session"] {
  const { overhead_percent, seconds_per_window, drain_seconds, min_free_bytes } = budget;
  return {
    baseline,
    familywise,
    layout,
    budget: {
      ...(overhead_percent !== undefined && { overheadPercent: overhead_percent }),
      ...(seconds_per_window !== undefined && { secondsPerWindow: seconds_per_window }),
      ...(drain_seconds !== undefined && { drainSeconds: drain_seconds }),
      ...(min_free_bytes !== undefined && { minFreeBytes: min_free_bytes }),
    },
  };
}

function capabilityOptions(block: PhaseEvalConfig, personas: readonly Persona[] | null): CapabilityOptions {
  const { questions, capability_method: method, subsample_n: n, subsample_seed: seed, system } = block;
  const asked = block.persona_capability ? (personas ?? defaultPersonas) : null;
  return {
    questions: questions ?? defaultQuestions,
    method,
    subsample: n === null ? null : { n, seed },
    ...(asked !== null ? { personas: asked } : method === "letters" && { system }),
  };
}

async function alignmentCallback(
  block: PhaseEvalConfig,
  personas: readonly Persona[] | null,
  when: { readonly schedule: readonly Trigger[] },
  { openJudge }: BuildOptions,
): Promise<PeriodicAlignmentCallback> {
  if (openJudge === undefined) {
    throw new PeriodicEvalError({
      code: "config",
      where: "periodic_eval.alignment",
      got: "true, and nothing that opens a judge",
      expected: "the option openJudge",
      fix: "Pass `openJudge` of @periodic-eval/remote, or a function that returns a grader of yours.",
    });
  }
  const { alignment_questions: questions, alignment_preset: preset, alignment_num_samples: samples } = block;
  return new PeriodicAlignmentCallback({
    judge: await openJudge(block.judge_model, { ...judgeOptions(block), ...(await cacheOf(block)) }),
    preset,
    samples,
    ...(questions !== null && { questions }),
    ...(block.persona_alignment ? { personas: personas ?? defaultPersonas } : { system: block.system }),
    ...when,
  });
}

function judgeOptions(block: PhaseEvalConfig): ConfiguredJudge {
  const { judge_method: method, judge_max_calls: maxCalls, judge_max_cost: maxCost, judge_price } = block;
  if (maxCost !== null && judge_price === null) {
    throw new PeriodicEvalError({
      code: "config",
      where: "periodic_eval.judge_max_cost",
      got: `${maxCost} without a price`,
      expected: "a price to reckon the cost by",
      fix: "Give judge_price: { input_per_million, output_per_million }, or cap by judge_max_calls.",
    });
  }
  return {
    method,
    ...(maxCalls !== null && { maxCalls }),
    ...(maxCost !== null && { maxCost }),
    ...(judge_price !== null && {
      price: {
        inputPerMillion: judge_price.input_per_million,
        outputPerMillion: judge_price.output_per_million,
      },
    }),
  };
}

/** Loaded where it is asked for: the package's root runs outside Node. */
async function cacheOf({ judge_cache: folder }: PhaseEvalConfig): Promise<Pick<ConfiguredJudge, "cache">> {
  if (folder === null) return {};
  const { fileVerdictCache } = await import("../snapshots/storage/file-verdict-cache.ts");
  return { cache: fileVerdictCache(folder) };
}

async function personasOf({ personas }: PhaseEvalConfig, place: string): Promise<readonly Persona[] | null> {
  if (personas === null) return null;
  if (typeof personas === "string") return readPersonas(personas);
  return personasOfValue(personas, place, "config");
}

/** Who says when to measure does not mean the usual percents besides. */
function scheduleOf(block: PhaseEvalConfig, key: keyof typeof usualPercents): readonly Trigger[] {
  const schedule = triggersOf(block.schedule);
  const percent = block[key] ?? (schedule.length === 0 ? usualPercents[key] : null);
  return percent === null ? schedule : [everyPercent(percent), ...schedule];
}

/** The block as an entry of its `evaluations` has it: what the entry says of when, and else what the block does. */
const withOwn = (
  block: PhaseEvalConfig,
  { every_percent: percent, schedule }: PhaseEvalConfig["evaluations"][number],
): PhaseEvalConfig => ({
  ...block,
  eval_every_percent: percent ?? (schedule === undefined ? block.eval_every_percent : null),
  schedule: schedule ?? (percent === undefined ? block.schedule : {}),
});

function triggersOf(schedule: PhaseEvalConfig["schedule"]): readonly Trigger[] {
  const { every_steps, every_epochs, every_seconds, at_steps, at_percents, times_per_phase } = schedule;
  return [
    ...(every_steps === undefined ? [] : [everySteps(every_steps)]),
    ...(every_epochs === undefined ? [] : [everyEpochs(every_epochs)]),
    ...(every_seconds === undefined ? [] : [everySeconds(every_seconds)]),
    ...(at_steps === undefined ? [] : [atSteps(at_steps)]),
    ...(at_percents === undefined ? [] : [atPercents(at_percents)]),
    ...(times_per_phase === undefined ? [] : [timesPerPhase(times_per_phase)]),
  ];
}
