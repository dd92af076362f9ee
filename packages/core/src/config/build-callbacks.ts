import type { AnyEvaluation } from "../contracts/evaluation.ts";
import type { Grader } from "../contracts/grading.ts";
import type { Awaitable } from "../contracts/json.ts";
import type { SessionOptions } from "../contracts/session.ts";
import type { PeriodicCallback } from "../callback/periodic-callback.ts";
import { PeriodicAlignmentCallback } from "../evaluations/alignment/callback.ts";
import { PeriodicCapabilityCallback } from "../evaluations/capability/callback.ts";
import { capabilityEvaluation } from "../evaluations/capability/evaluation.ts";
import type { CapabilityOptions } from "../evaluations/capability/options.ts";
import { PeriodicKLCallback } from "../evaluations/kl/callback.ts";
import { PeriodicLeakageCallback } from "../evaluations/leakage/callback.ts";
import { PeriodicMarginCallback } from "../evaluations/margin/callback.ts";
import {
  defaultPersonas,
  parsePersonas,
  readPersonas,
  type Persona,
} from "../evaluations/prompting/personas.ts";
import type { JudgePrice } from "../grading/judge/budget.ts";
import type { VerdictCache } from "../grading/judge/verdict-cache.ts";
import { PeriodicEvalError } from "../errors.ts";
import { configError, pathText } from "../internal/config-error.ts";
import type { defaultPercents, klSources, PhaseEvalConfig } from "./config-schema.ts";
import { configuredCallbacks, type EvaluationRegistry } from "./configured-evaluations.ts";
import { blockName, parseBlock, type ParsedBlock } from "./parse-config.ts";
import { alignmentKeys, atKeys, capabilityKeys, leakageKeys, marginKeys } from "./option-keys.ts";
import { scheduleOf, scheduleOfEntry } from "./schedules.ts";

/** The judge's options in a configuration, as `openJudge` of @periodic-eval/remote takes them. */
export interface ConfiguredJudge {
  readonly method: "json" | "logprob";
  readonly maxCalls?: number;
  readonly maxCost?: number;
  readonly price?: JudgePrice;
  /** The cache in the folder `judge_cache`. */
  readonly cache?: VerdictCache;
}

export interface BuildOptions {
  readonly phase: string;
  /** All phases of the run. If set, overrides of any other phase are an error that names the nearest phase. */
  readonly phases?: readonly string[];
  /**
   * Opens the judge of alignment, for example `openJudge` of @periodic-eval/remote. `model` is the configuration's `judge_model`,
   * or null.
   */
  readonly openJudge?: (model: string | null, options: ConfiguredJudge) => Awaitable<Grader>;
  /** Creates the entries of `evaluations`, for example `evaluationsOf(tasks)` of @periodic-eval/tasks. */
  readonly evaluations?: EvaluationRegistry;
}

/** The content of a `periodic_eval` block for one phase. */
export interface PeriodicEval {
  readonly callbacks: readonly PeriodicCallback[];
  /** Spread these into the session's options, or pass them as `session` to a trainer. */
  readonly session: Pick<SessionOptions, "baseline" | "familywise" | "budget" | "layout">;
  /** If true, pass the session a `saveAtFiring` that saves the adapter: only the caller knows how to save it. */
  readonly saveAdapterAtFiring: boolean;
}

/** The default question file of capability. */
const defaultQuestions = "arc_challenge/test.jsonl";

/**
 * Builds the callbacks and session options of a `periodic_eval` block for one phase. The configuration is the block itself, or
 * holds it as `periodic_eval` or `eval.periodic_eval`. Missing keys have their defaults. There are no callbacks if the block is
 * not enabled.
 *
 * @throws PeriodicEvalError `config` for a wrong block, overrides of a phase that is not in `phases`, alignment without a judge,
 *   or an evaluation that nothing creates, with `path` within the block; `data` for an unreadable file of personas.
 */
export async function buildPeriodicEval(config: unknown, options: BuildOptions): Promise<PeriodicEval> {
  const block = parseBlock(config, options.phase, options.phases);
  return {
    callbacks: block.config.enabled ? await callbacksOf(block, options) : [],
    session: sessionOf(block.config),
    saveAdapterAtFiring: block.config.save_adapter_at_firing,
  };
}

/** Returns only the callbacks of `buildPeriodicEval`. */
export const buildPeriodicCallbacks = async (
  config: unknown,
  options: BuildOptions,
): Promise<readonly PeriodicCallback[]> => (await buildPeriodicEval(config, options)).callbacks;

async function callbacksOf(block: ParsedBlock, options: BuildOptions): Promise<readonly PeriodicCallback[]> {
  const { config } = block;
  const when = (key: keyof typeof defaultPercents) => ({ schedule: scheduleOf(config, key) });
  const personas = await personasOf(block);
  const capability = capabilityOptions(config, personas);
  const isOptional = { optional: config.questions === null };
  const callbacks: PeriodicCallback[] = [];
  if (config.capability)
    callbacks.push(
      atKeys(
        () => new PeriodicCapabilityCallback({ ...capability, ...when("eval_every_percent"), ...isOptional }),
        block,
        capabilityKeys,
      ),
    );
  if (config.alignment)
    callbacks.push(await alignmentCallback(block, personas, when("alignment_every_percent"), options));
  if (config.leakage) callbacks.push(leakageCallback(block, personas, when("leakage_every_percent")));
  const probes = config.margin;
  if (probes !== null)
    callbacks.push(
      atKeys(() => new PeriodicMarginCallback({ probes, ...when("eval_every_percent") }), block, marginKeys),
    );
  for (const source of klSourcesOf(config)) {
    const schedule = when(percentOf[source]);
    if (source === "capability")
      callbacks.push(
        new PeriodicKLCallback({ of: capabilityEvaluation(capability), ...schedule, ...isOptional }),
      );
    else callbacks.push(new PeriodicKLCallback({ of: measuredBy(callbacks, source, block), ...schedule }));
  }
  const further = await configuredCallbacks(config.evaluations, {
    path: block.pathOf("evaluations"),
    kinds: options.evaluations ?? {},
    scheduleOf: (entry) => scheduleOfEntry(config, entry),
    taken: callbacks.map(({ id }) => id),
  });
  return [...callbacks, ...further];
}

const percentOf = {
  capability: "eval_every_percent",
  alignment: "alignment_every_percent",
  leakage: "leakage_every_percent",
  margin: "eval_every_percent",
} as const satisfies Record<(typeof klSources)[number], keyof typeof defaultPercents>;

const klSourcesOf = ({ kl }: PhaseEvalConfig) =>
  typeof kl === "boolean" ? (kl ? (["capability"] as const) : []) : [...new Set(kl)];

/** @throws PeriodicEvalError `config` if the block does not measure `source`: then nothing defines its prompts. */
function measuredBy(
  callbacks: readonly PeriodicCallback[],
  source: string,
  { pathOf }: ParsedBlock,
): AnyEvaluation {
  const callback = callbacks.find(({ id }) => id === source);
  if (callback !== undefined) return callback.asks[0]!;
  const measured = callbacks.map(({ id }) => id).join(", ") || "nothing";
  throw configError({
    where: blockName,
    path: pathOf("kl"),
    got: `"${source}", which is not measured`,
    expected: `capability, or a measured evaluation: ${measured}`,
    fix: `Remove "${source}", or measure it.`,
  });
}

function sessionOf({ baseline, familywise, budget, layout }: PhaseEvalConfig): PeriodicEval["session"] {
  const { overhead_percent, grace_seconds, seconds_per_window, drain_seconds, min_free_bytes } = budget;
  return {
    baseline,
    familywise,
    layout,
    budget: {
      ...(overhead_percent !== undefined && { overheadPercent: overhead_percent }),
      ...(grace_seconds !== undefined && { graceSeconds: grace_seconds }),
      ...(seconds_per_window !== undefined && { secondsPerWindow: seconds_per_window }),
      ...(drain_seconds !== undefined && { drainSeconds: drain_seconds }),
      ...(min_free_bytes !== undefined && { minFreeBytes: min_free_bytes }),
    },
  };
}

type Schedule = Pick<ConstructorParameters<typeof PeriodicMarginCallback>[0], "schedule">;

function capabilityOptions(config: PhaseEvalConfig, personas: readonly Persona[] | null): CapabilityOptions {
  const { questions, capability_method: method, subsample_n: n, subsample_seed: seed, system } = config;
  const roles = config.persona_capability ? (personas ?? defaultPersonas) : null;
  return {
    questions: questions ?? defaultQuestions,
    method,
    subsample: n === null ? null : { n, seed },
    ...(config.min_items !== null && { minItems: config.min_items }),
    ...(roles !== null ? { personas: roles } : method === "letters" && { system }),
  };
}

function leakageCallback(
  block: ParsedBlock,
  personas: readonly Persona[] | null,
  when: Schedule,
): PeriodicLeakageCallback {
  const { config } = block;
  const { leakage_questions: questions, leakage_source: source } = config;
  return atKeys(
    () =>
      new PeriodicLeakageCallback({
        marker: config.leakage_marker_token,
        completions: config.leakage_num_completions,
        ...(personas !== null && { personas }),
        ...(questions !== null && { questions }),
        ...(source !== null && { source }),
        ...when,
      }),
    block,
    leakageKeys,
  );
}

async function alignmentCallback(
  block: ParsedBlock,
  personas: readonly Persona[] | null,
  when: Schedule,
  { openJudge }: BuildOptions,
): Promise<PeriodicAlignmentCallback> {
  const { config, pathOf } = block;
  if (openJudge === undefined)
    throw configError({
      where: blockName,
      path: pathOf("alignment"),
      got: "true, without a function that opens the judge",
      expected: "the option `openJudge` of buildPeriodicEval",
      fix: "Pass `openJudge` of @periodic-eval/remote, or a function that returns a custom grader.",
    });
  const { alignment_questions: questions, alignment_preset: preset, alignment_num_samples: samples } = config;
  const judge = await openAtJudgeModel(openJudge, block);
  return atKeys(
    () =>
      new PeriodicAlignmentCallback({
        judge,
        preset,
        samples,
        ...(questions !== null && { questions }),
        ...(config.persona_alignment ? { personas: personas ?? defaultPersonas } : { system: config.system }),
        ...when,
      }),
    block,
    alignmentKeys,
  );
}

/** Opens the block's judge. The errors of `open` are about its own options, so they get the path of `judge_model`. */
async function openAtJudgeModel(
  open: NonNullable<BuildOptions["openJudge"]>,
  block: ParsedBlock,
): Promise<Grader> {
  const { config, pathOf } = block;
  const options = { ...judgeOptions(block), ...(await cacheOf(config)) };
  try {
    return await open(config.judge_model, options);
  } catch (cause) {
    if (!PeriodicEvalError.is(cause)) throw cause;
    const path = pathOf("judge_model");
    const { code, got, expected, fix } = cause;
    const where = `${blockName}${pathText(path)}, ${cause.where}`;
    throw new PeriodicEvalError({ code, where, path, got, expected, fix, cause });
  }
}

function judgeOptions({ config, pathOf }: ParsedBlock): ConfiguredJudge {
  const { judge_method: method, judge_max_calls: maxCalls, judge_max_cost: maxCost, judge_price } = config;
  if (maxCost !== null && judge_price === null)
    throw configError({
      where: blockName,
      path: pathOf("judge_max_cost"),
      got: `${maxCost} without a price`,
      expected: "a price to compute the cost with",
      fix: "Set judge_price: { input_per_million, output_per_million }, or use judge_max_calls.",
    });
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

/** Imports the file cache only if it is used: the package's root runs outside Node. */
async function cacheOf({ judge_cache: folder }: PhaseEvalConfig): Promise<Pick<ConfiguredJudge, "cache">> {
  if (folder === null) return {};
  const { fileVerdictCache } = await import("../snapshots/storage/file-verdict-cache.ts");
  return { cache: fileVerdictCache(folder) };
}

async function personasOf({ config: { personas }, pathOf }: ParsedBlock): Promise<readonly Persona[] | null> {
  if (personas === null) return null;
  if (typeof personas === "string") return readPersonas(personas);
  return parsePersonas(personas, { where: blockName, path: pathOf("personas"), code: "config" });
}
