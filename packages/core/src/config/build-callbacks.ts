import type {
  AnyEvaluation,
  SessionOptions,
  TrainerCallback,
  ValuePath,
  Awaitable,
  Trigger,
} from "@periodic-eval/contracts";
import {
  camelCaseKeys,
  configError,
  entryAt,
  fromWritten,
  pathText,
  nearest,
} from "@periodic-eval/contracts/options";
import { PeriodicCallback } from "../callback/periodic-callback.ts";
import { escalate } from "../callback/reactions.ts";
import { holdsFor } from "../conditions/evidence.ts";
import { findMetric } from "../conditions/find-metric.ts";
import { capabilityEvaluation } from "../evaluations/capability/evaluation.ts";
import { withItems } from "../evaluations/kit/define.ts";
import { judgesOf, type OpenJudge } from "./block-judge.ts";
import {
  PeriodicAlignmentCallback,
  PeriodicCapabilityCallback,
  PeriodicForgettingCallback,
  PeriodicKLCallback,
  PeriodicLeakageCallback,
  PeriodicMarginCallback,
  PeriodicMemorizationCallback,
  PeriodicRefusalCallback,
  PeriodicSycophancyCallback,
} from "./callbacks.ts";
import {
  klSourcesOf,
  type defaultPercents,
  type escalated,
  type klSources,
  type PhaseEvalConfig,
} from "./config-schema.ts";
import {
  capabilityOptionsOf,
  personasOf,
  scheduleOf,
  scheduleOfEntry,
  klKeys,
  placingItems,
} from "./from-block.ts";
import { PeriodicTraitsCallback } from "./traits-callback.ts";
import { entryOf } from "./schema-parts.ts";
import { blockName, parseBlock, type ParsedBlock, type PeriodicEvalInput } from "./parse-config.ts";

export interface BuildOptions {
  readonly phase: string;
  /** All phases of the run. If set, overrides of any other phase are an error that names the nearest phase. */
  readonly phases?: readonly string[];
  /**
   * Opens the judges of alignment and refusal. The session disposes them when it closes. Default: `openLocalJudge` of
   * @periodic-eval/models for a judge that runs in this process (`folder:`, `hf:`, `transformers:`), else `openJudge` of
   * @periodic-eval/remote. The package must be installed.
   */
  readonly openJudge?: OpenJudge;
  /** Creates the entries of `evaluations`, for example `evaluationsOf(tasks)` of @periodic-eval/tasks. */
  readonly evaluations?: EvaluationRegistry;
  /** Whether the caller measures on the server of `measure_on`. Default false: the key is an error. */
  readonly canMeasureOn?: boolean;
}

/** The content of a `periodic_eval` block for one phase. */
export interface PeriodicEval {
  readonly callbacks: readonly TrainerCallback[];
  /** Spread these into the session's options, or pass them as `session` to a trainer. */
  readonly session: Pick<SessionOptions, "baseline" | "familywise" | "budget" | "layout" | "stopWhen">;
  /** If true, pass the session a `saveAtFiring` that saves the adapter: only the caller knows how to save it. */
  readonly saveAdapterAtFiring: boolean;
  /** The server of `measure_on`, and the callbacks whose evaluations it measures; omitted without one. */
  readonly measureOn?: NonNullable<PhaseEvalConfig["measure_on"]>;
  /** Options of `notifyLogger` of @periodic-eval/loggers, which the caller opens; omitted without `notify`. */
  readonly notify?: Readonly<Record<string, unknown>>;
}

/**
 * Builds the callbacks and session options of a `periodic_eval` block for one phase. The configuration is the block itself, or
 * holds it as `periodic_eval` or `eval.periodic_eval`. Missing keys have their defaults. There are no callbacks if the block is
 * not enabled.
 *
 * @throws PeriodicEvalError `config` for a wrong block, overrides of a phase that is not in `phases`, a judge that
 *   cannot be opened, or an evaluation that nothing creates, with `path` within the block.
 */
export async function buildPeriodicEval(config: unknown, options: BuildOptions): Promise<PeriodicEval> {
  const block = parseBlock(config, options.phase, options.phases);
  const { enabled, measure_on: measureOn, notify } = block.config;
  const { save_adapter_at_firing: saveAdapterAtFiring } = block.config;
  if (measureOn !== null && options.canMeasureOn !== true)
    throw configError({
      where: blockName,
      path: block.pathOf("measure_on"),
      got: "a server",
      expected: "null, outside of a trainer that speaks the live protocol",
      fix: "Remove it; `periodic-eval train` and `watch` measure on a server with --engine URL.",
    });
  const callbacks = enabled ? await callbacksOf(block, options) : [];
  const stopWhen = enabled ? stopConditionsOf(block) : [];
  for (const { when, location } of stopWhen) findMetric(when, callbacks, location);
  return {
    callbacks,
    session: { ...sessionOf(block.config), stopWhen },
    saveAdapterAtFiring,
    ...(measureOn && { measureOn }),
    ...(notify && { notify: camelCaseKeys(notify) }),
  };
}

/** Returns only the callbacks of `buildPeriodicEval`. */
export const buildPeriodicCallbacks = async (
  config: unknown,
  options: BuildOptions,
): Promise<readonly TrainerCallback[]> => (await buildPeriodicEval(config, options)).callbacks;

async function callbacksOf(written: ParsedBlock, options: BuildOptions): Promise<readonly TrainerCallback[]> {
  const { config } = written;
  const judgeOf = judgesOf(written, options.openJudge);
  const block = { ...written, judgeOf };
  const parsed = block as unknown as PeriodicEvalInput;
  personasOf(block);
  const callbacks: PeriodicCallback[] = [];
  if (config.capability) callbacks.push(new PeriodicCapabilityCallback(parsed));
  if (config.alignment) {
    // Opened now, so that a wrong judge is an error of this call.
    await judgeOf("first");
    if (config.judge_models !== null) await judgeOf("second");
    callbacks.push(new PeriodicAlignmentCallback(parsed));
  }
  if (config.leakage) callbacks.push(new PeriodicLeakageCallback(parsed));
  if (config.margin !== null) callbacks.push(new PeriodicMarginCallback(parsed));
  if (config.forgetting !== false) callbacks.push(new PeriodicForgettingCallback(parsed));
  if (config.refusal !== false) {
    if (entryOf(config.refusal).judge_model !== undefined) await judgeOf("refusal");
    callbacks.push(new PeriodicRefusalCallback(parsed));
  }
  if (config.sycophancy !== false) callbacks.push(new PeriodicSycophancyCallback(parsed));
  if (config.traits !== false) callbacks.push(new PeriodicTraitsCallback(parsed));
  if (config.memorization !== null) callbacks.push(new PeriodicMemorizationCallback(parsed));
  for (const source of klSourcesOf(config)) {
    const schedule = scheduleOf(config, percentOf[source]);
    const options =
      source === "capability"
        ? { of: placingItems(capabilityEvaluation(capabilityOptionsOf(block)), block, klKeys) }
        : { of: measuredBy(callbacks, source, block) };
    callbacks.push(new PeriodicKLCallback({ ...options, schedule }));
  }
  const further = await configuredCallbacks(config.evaluations, {
    path: block.pathOf("evaluations"),
    kinds: options.evaluations ?? {},
    scheduleOf: (entry) => scheduleOfEntry(config, entry),
    taken: callbacks.map(({ id }) => id),
  });
  const measuring = [...callbacks, ...further];
  const escalations = config.escalate.map((_, at) => escalation(at, block, measuring));
  return [...measuring, ...escalations];
}

const escalatedBy = {
  capability: PeriodicCapabilityCallback,
  alignment: PeriodicAlignmentCallback,
  leakage: PeriodicLeakageCallback,
  forgetting: PeriodicForgettingCallback,
  sycophancy: PeriodicSycophancyCallback,
  refusal: PeriodicRefusalCallback,
} satisfies Record<(typeof escalated)[number], unknown>;

/** Builds the callback of an entry of `escalate`, whose evaluations need not be on in the block. */
function escalation(at: number, block: ParsedBlock, measuring: readonly PeriodicCallback[]): TrainerCallback {
  const { when, run, samples } = block.config.escalate[at]!;
  const path = [...block.pathOf("escalate"), at, "when"];
  const named = (text: string) => findMetric(text, measuring, { where: blockName, path });
  const condition = named(when);
  const config = {
    ...block.config,
    ...(samples !== undefined && { alignment_num_samples: samples, leakage_num_completions: samples }),
  };
  const evaluations = run.map((name) => {
    const on = { ...config, [name]: config[name] === false ? true : config[name] };
    const parsed = { ...block, config: on } as unknown as PeriodicEvalInput;
    return new escalatedBy[name](parsed).asks[0]!;
  });
  // Only more samples than the condition's evaluation has are another measurement.
  const measured = measuring.find(({ id }) => id === condition.id)?.asks[0];
  const isMeasured = evaluations.some(
    ({ samplesPerItem = 1 }, i) =>
      run[i] === condition.id && samplesPerItem <= (measured?.samplesPerItem ?? 1),
  );
  const isRepeated = block.config.escalate
    .slice(0, at)
    .some(
      (rule) => named(rule.when).fullText === condition.fullText && rule.run.some((id) => run.includes(id)),
    );
  if (isRepeated || isMeasured)
    throw configError({
      where: blockName,
      path,
      value: condition.text,
      expected: isMeasured
        ? `other evaluations than ${condition.id}, or more samples than it has`
        : "each evaluation once for a condition",
      fix: "Remove the entry, or the evaluation from its `run`.",
    });
  const callback = escalate({
    id: at === 0 ? "escalate" : `escalate-${at + 1}`,
    when: (snapshot) => {
      const metric = condition.metric ?? snapshot.primary_metric;
      return snapshot.id === condition.id && metric !== null && holdsFor(condition, metric, snapshot);
    },
    run: evaluations,
  });
  return { ...callback, conditions: [condition] };
}

const percentOf = {
  capability: "eval_every_percent",
  alignment: "alignment_every_percent",
  leakage: "leakage_every_percent",
  margin: "eval_every_percent",
} as const satisfies Record<(typeof klSources)[number], keyof typeof defaultPercents>;

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

const sessionOf = ({ baseline, familywise, budget, layout }: PhaseEvalConfig): PeriodicEval["session"] => ({
  baseline,
  familywise,
  layout,
  budget: { ...camelCaseKeys(budget), inBlock: true },
});

function stopConditionsOf({ config, pathOf }: ParsedBlock) {
  return config.stop_when.map((entry, at) => {
    const path = [...pathOf("stop_when"), at];
    return typeof entry === "string"
      ? { when: entry, location: { where: blockName, path } }
      : {
          when: entry.when,
          evenAtStart: entry.even_at_start,
          location: { where: blockName, path: [...path, "when"] },
        };
  });
}

/**
 * Creates an evaluation from an entry of `evaluations`, without the keys that all kinds share (`id`, `every_percent`,
 * `schedule`). The `path` of its errors is within `options`.
 *
 * @param where The entry's place, for errors: `periodic_eval.evaluations[0]`. The name of a key follows after a dot.
 */
export type EvaluationMaker = (
  options: Readonly<Record<string, unknown>>,
  where: string,
) => Awaitable<AnyEvaluation>;

/** Kinds of evaluations, by the key that names the evaluation in an entry: `task` in `{ task: gsm8k, limit: 50 }`. */
export type EvaluationRegistry = Readonly<Record<string, EvaluationMaker>>;

type Entry = PhaseEvalConfig["evaluations"][number];

interface ConfiguredOptions {
  /** Where the block holds the entries: `["evaluations"]`. */
  readonly path: ValuePath;
  readonly kinds: EvaluationRegistry;
  readonly scheduleOf: (entry: Entry) => readonly Trigger[];
  /** Ids of the other callbacks. */
  readonly taken: readonly string[];
}

/**
 * Creates the callbacks of the entries of `evaluations`.
 *
 * @throws PeriodicEvalError `config` for an entry of no kind or of two kinds, or an id that another callback has; the errors of
 *   `EvaluationMaker`, with the entry's path.
 */
async function configuredCallbacks(
  entries: readonly Entry[],
  { path: base, kinds, scheduleOf, taken }: ConfiguredOptions,
): Promise<readonly PeriodicCallback[]> {
  const callbacks: PeriodicCallback[] = [];
  for (const [at, entry] of entries.entries()) {
    const path = [...base, at];
    const { id, every_percent: _percent, schedule: _schedule, ...keys } = entry;
    // Null means the default, whatever the kind of evaluation.
    const options = Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== null));
    const schedule = scheduleOf(entry);
    const callback = await openEntry(
      options,
      kinds,
      { where: blockName, path },
      (evaluation) => new PeriodicCallback(evaluation, { schedule, ...(id !== undefined && { id }) }),
    );
    if ([...taken, ...callbacks.map((other) => other.id)].includes(callback.id))
      throw configError({
        where: blockName,
        path,
        got: `"${callback.id}", the name of another evaluation`,
        expected: "unique names",
        fix: "Set an id: it names the snapshots.",
      });
    callbacks.push(callback);
  }
  return callbacks;
}

/**
 * Creates the evaluation of an entry of `evaluations`, without the keys that all kinds share. Errors of its kind, and of its items,
 * name the entry.
 *
 * @param place What holds the entry, and the entry's path in it.
 * @param use Receives the evaluation; its errors name the entry too.
 * @throws PeriodicEvalError `config` for an entry of no kind or of two kinds; the errors of `EvaluationMaker`.
 */
export async function openEntry<T>(
  options: Readonly<Record<string, unknown>>,
  kinds: EvaluationRegistry,
  { where, path }: { readonly where: string; readonly path: ValuePath },
  use: (evaluation: AnyEvaluation) => T,
): Promise<T> {
  const make = kinds[kindOf(options, kinds, { where, path })]!;
  const place = `${where}${pathText(path)}`;
  const written = entryAt(options, place, path);
  return fromWritten(written, async () => {
    const made = await make(options, place);
    return use(withItems(made, (model) => fromWritten(written, () => made.items(model))));
  });
}

/** @throws PeriodicEvalError `config` for an entry of no kind or of two kinds. */
export function kindOf(
  options: Readonly<Record<string, unknown>>,
  kinds: EvaluationRegistry,
  place: { readonly where: string; readonly path: ValuePath },
): string {
  const known = Object.keys(kinds);
  const keys = Object.keys(options);
  const wrong = (got: string, expected: string, fix: string) => configError({ ...place, got, expected, fix });
  if (known.length === 0) {
    const fix = "Pass `evaluationsOf(tasks)` of @periodic-eval/tasks, or custom makers by name.";
    const expected = "the option `evaluations` of buildPeriodicEval";
    throw wrong("an evaluation, and no registry that creates it", expected, fix);
  }
  const expected = `one of ${known.join(", ")}`;
  const named = keys.filter((key) => known.includes(key));
  if (named.length === 1) return named[0]!;
  if (named.length > 1) throw wrong(named.join(" and "), expected, "Write one entry for each.");
  const guess = keys.map((key) => nearest(key, known)).find((kind) => kind !== null);
  const fix = guess === undefined ? `Name the evaluation, as ${known[0]}: name.` : `Did you mean "${guess}"?`;
  throw wrong(keys.length === 0 ? "no kind" : keys.join(", "), expected, fix);
}
