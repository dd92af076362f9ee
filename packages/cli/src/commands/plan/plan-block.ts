import { renderPrompts } from "@periodic-eval/core/evaluations";
import {
  type AnyEvaluation,
  type Budget,
  type BulkTokenizer,
  buildPeriodicEval,
  measure,
  type ConfiguredJudge,
  type EvaluableModel,
  type EvaluationRegistry,
  type Grader,
  type MeasureOptions,
  PeriodicCallback,
} from "@periodic-eval/core";
import { judgePromptNames } from "@periodic-eval/core/grading";
import { errorMessage } from "@periodic-eval/contracts/options";
import {
  adapterOffId,
  describeStepTime,
  lacksOptionalQuestions,
  measuredBy,
  plannedSteps,
} from "@periodic-eval/core/session";
import { throwAll } from "../../config/config-file.ts";
import { openRule } from "../../config/open-grader.ts";
import type { MeasuringDisplay } from "../../terminal/progress.ts";

export interface PlannedPhase {
  readonly name: string;
  readonly maxSteps: number;
}

/** The plan of one callback in one phase. */
export interface PlannedCallback {
  readonly phase: string;
  readonly id: string;
  /** Steps of its measurements; null if the schedule counts epochs or seconds. */
  readonly steps: readonly number[] | null;
  /** Cost of one measurement; null if no model was opened to try it. */
  readonly measurement: PlannedMeasurement | null;
  /** The evaluation's first prompt; null if it has none, or if prompts were not requested. */
  readonly prompt: readonly DisplayToken[] | null;
}

/** The plans of all callbacks. */
export interface Plan {
  readonly callbacks: readonly PlannedCallback[];
  /** By phase: the step time that all measurements need; null if that is not known, or does not matter. */
  readonly stepTimes: Readonly<Record<string, string | null>>;
}

/** Cost of one measurement, estimated from a few of its items. */
export interface PlannedMeasurement {
  readonly items: number;
  readonly rows: number;
  readonly seconds: number;
  readonly tokens: number | null;
  /** Number of verdicts, of two judges with `judge_models` and of anchors too. */
  readonly judged: number;
}

/** The model on which measurements are tried, or whose prompts are shown. */
export interface TrialModel {
  /** The model without weights, with which items are read first. */
  readonly outline: EvaluableModel;
  /** Null if only prompts are shown. */
  readonly open: (() => Promise<EvaluableModel>) | null;
  /** Whether training adds an adapter, which measurements can switch off. The trial model has no adapter yet. */
  readonly isAdapted: boolean;
  /** Shows how far a trial is. */
  readonly show: MeasuringDisplay["show"];
  readonly warn: (message: string) => void;
}

/** Number of items that are measured to estimate the cost of all. */
const trialItems = 4;

/**
 * Plans a `periodic_eval` block before anything runs: the steps of each measurement, and with a model the cost of one, which
 * is estimated from its first items. A grader that only counts stands in for the judge.
 *
 * @param phases All phases of the run. Overrides for another phase are an error.
 * @param trial Opened only after the items of all callbacks could be read.
 * @param evaluations Evaluations that the block's `evaluations` can name.
 * @throws PeriodicEvalError `config` for a wrong block; `data` or `model` for errors that a run would throw before step 1.
 *   Several errors are an AggregateError.
 */
export async function planBlock(
  block: unknown,
  phases: readonly PlannedPhase[],
  trial: TrialModel | null,
  evaluations: EvaluationRegistry = {},
): Promise<Plan> {
  const names = phases.map(({ name }) => name);
  const built: BuiltPhase[] = [];
  for (const phase of phases) built.push(await buildPhase(block, phase, names, evaluations));
  const outline = trial && withBase(trial.outline, trial);
  const items = trial && (await readItems(built, outline!, trial));
  const model = trial?.open == null ? null : withBase(await trial.open(), trial);
  const planned: PlannedCallback[] = [];
  for (const phase of built) {
    for (const callback of phase.callbacks.filter((candidate) => items === null || items.has(candidate))) {
      for (const [at, { id, evaluation }] of measuredBy(callback).entries()) {
        const measurement = model && (await estimate({ id, evaluation }, model, phase, trial!.show));
        const isShown = at === 0 && trial !== null && model === null;
        const prompt = isShown ? await firstPrompt(evaluation, outline!, items!.get(callback)!) : null;
        // Further evaluations, as the directions of traits, are measured at the edges.
        if (at > 0) planned.push({ phase: phase.name, id, steps: [0, phase.maxSteps], measurement, prompt });
        else planned.push(...planCallback(phase, callback, { measurement, prompt }));
      }
    }
  }
  return {
    callbacks: planned,
    stepTimes: Object.fromEntries(built.map((phase) => [phase.name, stepTimeOf(phase, planned)])),
  };
}

/** Returns the step time that all measurements of a phase need; null if that is not known, or does not matter. */
function stepTimeOf(
  { name, maxSteps, budget }: BuiltPhase,
  planned: readonly PlannedCallback[],
): string | null {
  const ofPhase = planned.filter(({ phase }) => phase === name);
  if (ofPhase.some(({ steps, measurement }) => steps === null || measurement === null)) return null;
  const evaluations = ofPhase.map(({ id, steps, measurement }) => ({
    id,
    seconds: steps!.length * measurement!.seconds,
  }));
  const seconds = evaluations.reduce((sum, evaluation) => sum + evaluation.seconds, 0);
  return describeStepTime({ seconds, evaluations, maxSteps, budget });
}

/** Uses the model as its own base: measuring without the adapter takes as long. */
const withBase = (model: EvaluableModel, { isAdapted }: TrialModel): EvaluableModel =>
  isAdapted && model.base === undefined ? { ...model, base: model } : model;

interface BuiltPhase extends PlannedPhase {
  readonly callbacks: readonly PeriodicCallback[];
  readonly hasAdapterOff: boolean;
  readonly budget: Budget;
  /** Of alignment (two with `judge_models`) and of refusal. */
  readonly judges: readonly CountingJudge[];
}

async function buildPhase(
  block: unknown,
  phase: PlannedPhase,
  phases: readonly string[],
  evaluations: EvaluationRegistry,
): Promise<BuiltPhase> {
  const judges: CountingJudge[] = [];
  const openJudge = async (spec: string | null, configured: ConfiguredJudge) => {
    const judge = await planJudge(spec, configured);
    judges.push(judge);
    return judge;
  };
  const build = { phase: phase.name, phases, openJudge, evaluations };
  const { callbacks, session } = await buildPeriodicEval(block, build);
  // Escalations have no schedule.
  const planned = callbacks.filter((callback) => callback instanceof PeriodicCallback);
  const { baseline, budget = {} } = session;
  return { ...phase, callbacks: planned, hasAdapterOff: baseline === "adapter_off", budget, judges };
}

/**
 * Reads the items of every callback, so that missing data is reported before weights are loaded.
 *
 * @returns The items by callback, without the callbacks that a training would disable.
 */
async function readItems(
  phases: readonly BuiltPhase[],
  outline: EvaluableModel,
  { warn }: Pick<TrialModel, "warn">,
): Promise<ReadonlyMap<PeriodicCallback, readonly unknown[]>> {
  const errors: unknown[] = [];
  const items = new Map<PeriodicCallback, readonly unknown[]>();
  for (const callback of phases.flatMap(({ callbacks }) => callbacks)) {
    try {
      items.set(callback, await callback.asks[0]!.items(outline as never));
    } catch (error) {
      if (lacksOptionalQuestions(callback.asks[0]!, error)) {
        warn(`${callback.id} would be skipped, because nobody asked for it by name: ${errorMessage(error)}`);
      } else errors.push(error);
    }
  }
  throwAll(errors);
  return items;
}

/** Returns the plan of a callback, and of its measurement without the adapter if the baseline is `adapter_off`. */
function planCallback(
  { name: phase, maxSteps, hasAdapterOff }: BuiltPhase,
  callback: PeriodicCallback,
  result: Pick<PlannedCallback, "measurement" | "prompt">,
): readonly PlannedCallback[] {
  const steps = plannedSteps(callback.triggers, maxSteps);
  const planned = { phase, id: callback.id, steps, ...result };
  if (!hasAdapterOff || !isComparedWithBase(callback)) return [planned];
  return [planned, { ...planned, id: adapterOffId(callback.id), steps: [steps?.[0] ?? 0] }];
}

/** The KL divergence from the base has no value without the adapter. */
const isComparedWithBase = ({ on, asks }: PeriodicCallback): boolean =>
  on === "model" && asks.every(({ name }) => name !== "kl_to_base");

/** Returns a stand-in for the configured judge. It rejects the same questions with the same messages. */
async function planJudge(spec: string | null, { method, scores }: ConfiguredJudge): Promise<CountingJudge> {
  const rule = await openRule(spec, scores);
  if (rule !== null) return countingJudge({ name: rule.name });
  const { judgeName } = await import("@periodic-eval/remote");
  return countingJudge({
    name: judgeName(spec) ?? "not named yet",
    promptNames: judgePromptNames(method, scores),
  });
}

async function estimate(
  { id, evaluation }: { readonly id: string; readonly evaluation: AnyEvaluation },
  model: EvaluableModel,
  { name: phase, judges }: BuiltPhase,
  show: TrialModel["show"],
): Promise<PlannedMeasurement> {
  const items = (await evaluation.items(model as never)).length;
  const takeJudged = () => judges.reduce((sum, judge) => sum + judge.take(), 0);
  // Two trials, of one item and of several, separate requests per measurement (anchors) from requests per item.
  const name = `trying ${id} of ${phase}`;
  const progress: MeasureOptions["progress"] = (done, total, pace) => show({ name, done, total, ...pace });
  await measure(evaluation, model, { limit: 1, progress });
  const ofOne = takeJudged();
  // Another seed, as at another step: the directions of traits are extracted again then.
  const { snapshot } = await measure(evaluation, model, { limit: trialItems, seed: "43", progress });
  const ofMore = takeJudged();
  const measured = Math.min(trialItems, items);
  const { measure_seconds, tokens, items: rows } = snapshot.timing;
  const scale = items / measured;
  return {
    items,
    rows: Math.round(rows * scale),
    seconds: measure_seconds * scale,
    tokens: tokens === null ? null : Math.round(tokens * scale),
    // Anchors are graded in each measurement, whatever its items.
    judged: measured === 1 ? ofMore : Math.round(ofOne + ((ofMore - ofOne) / (measured - 1)) * (items - 1)),
  };
}

/** A grader that counts the requests of a measurement instead of answering them. */
interface CountingJudge extends Grader {
  /** Returns the number of answers since the last call. */
  take(): number;
}

function countingJudge(judge: Pick<Grader, "name" | "promptNames">): CountingJudge {
  let count = 0;
  return {
    ...judge,
    fingerprint: "counting",
    async grade(requests) {
      count += requests.length;
      const scores = { aligned: 50, coherent: 50, refusal: 50 };
      return requests.map(() => ({ status: "graded", scores, raw: null }));
    },
    take() {
      const taken = count;
      count = 0;
      return taken;
    },
  };
}

/** A token for display. */
export interface DisplayToken {
  readonly id: number;
  /** The token's text, or its id in brackets for a part of a character or a token without text. */
  readonly text: string;
  /** Whether it is a special token such as `<|im_end|>`. */
  readonly isSpecial: boolean;
}

/**
 * Returns the first prompt of an evaluation as the model's tokenizer and chat template render it, token by token; null for an
 * evaluation without prompts. Needs no weights.
 *
 * @param items The evaluation's items.
 * @throws PeriodicEvalError if the template fails.
 */
export async function firstPrompt(
  evaluation: AnyEvaluation,
  model: EvaluableModel,
  items: readonly unknown[],
): Promise<readonly DisplayToken[] | null> {
  const { tokenizer } = model;
  const [prompt] = (await evaluation.prompts?.(model as never, items.slice(0, 1) as never)) ?? [];
  if (prompt === undefined || tokenizer === undefined) return null;
  const [rendered] = await renderPrompts(tokenizer, [prompt]);
  return displayTokens(tokenizer, rendered!.ids);
}

/** Decodes each token after its predecessor, because a SentencePiece decoder drops the leading space of a single token. */
export async function displayTokens(
  tokenizer: BulkTokenizer,
  ids: readonly number[],
): Promise<readonly DisplayToken[]> {
  const before = ids.map((_, at) => (at === 0 ? [] : [ids[at - 1]!]));
  const alone = ids.map((id) => [id]);
  const plain = await tokenizer.decode(alone, { specialTokens: false });
  const texts = await tokenizer.decode([...alone, ...before, ...ids.map((id, at) => [...before[at]!, id])]);
  return ids.map((id, at) => ({
    id,
    text: textOf(id, texts[ids.length + at]!, texts[2 * ids.length + at]!),
    isSpecial: plain[at] === "" && texts[at] !== "",
  }));
}

/** Returns the text of a token from the text of the token before it, and of both. */
function textOf(id: number, start: string, both: string): string {
  const text = both.startsWith(start) ? both.slice(start.length) : "";
  return text === "" || text.includes("\ufffd") ? `[${id}]` : text;
}

/** Joins tokens with bars. A line feed is shown as ⏎ and also breaks the line. */
export const promptText = (
  tokens: readonly DisplayToken[],
  paint: Readonly<Record<"special" | "bar", (text: string) => string>>,
): string =>
  tokens
    .map(({ text, isSpecial }) => (isSpecial ? paint.special(text) : text.replaceAll("\n", "⏎\n")))
    .join(paint.bar("│"));
