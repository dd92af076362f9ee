import {
  buildPeriodicEval,
  measure,
  type ConfiguredJudge,
  type EvaluableModel,
  type EvaluationRegistry,
  type Grader,
  type PeriodicCallback,
} from "@periodic-eval/core";
import { adapterOffId, isMissingFile, plannedSteps } from "@periodic-eval/core/session";
import { judgePromptNames, type JudgePrice } from "@periodic-eval/core/grading";
import { errorMessage } from "@periodic-eval/core/internal";
import { throwAll } from "../../config/collect-errors.ts";
import { openRule } from "../../config/open-grader.ts";

export interface PlannedPhase {
  readonly name: string;
  readonly maxSteps: number;
}

/** What one callback will do in one phase. */
export interface PlannedCallback {
  readonly phase: string;
  readonly id: string;
  /** Null where epochs or seconds decide. */
  readonly steps: readonly number[] | null;
  /** Of one look; null without a model, or where a file is missing. */
  readonly look: PlannedLook | null;
  /** Of an optional callback, what says that its file is missing: it will be skipped. Looked for where there is a model. */
  readonly missing: string | null;
}

/** What one look asks, estimated from a few of its items. */
export interface PlannedLook {
  readonly items: number;
  readonly rows: number;
  readonly seconds: number;
  readonly tokens: number | null;
  /** Answers that a judge is asked about, anchors included, and their characters with the questions'. */
  readonly judged: number;
  readonly judgedCharacters: number;
  readonly judgeMethod: JudgeMethod;
  /** As the configuration tells it; null where it does not. */
  readonly judgePrice: JudgePrice | null;
}

/** A rule is asked nothing that costs. */
type JudgeMethod = ConfiguredJudge["method"] | "rule";

/** The model that looks are tried on. */
export interface TriedModel {
  /** The same, whose weights need not be there: what is to be asked is read on it first. */
  readonly outline: EvaluableModel;
  readonly open: () => Promise<EvaluableModel>;
  /** Whether an adapter is trained on it, which can be switched off; of the model itself that is still to come. */
  readonly isAdapted: boolean;
}

/** Items measured to learn what one takes. */
const tried = 4;

/**
 * What a `periodic_eval` block will do, before anything runs: the steps of each phase, and with a model what a look takes,
 * learnt from its first items. No judge is asked: who grades here only counts.
 *
 * @param phases all of the run: overrides of another are refused.
 * @param tried opened once everything that is asked could be read
 * @param evaluations what makes the block's `evaluations`
 * @throws PeriodicEvalError `config` for a wrong block; `data`, `model` for what would fail before step 1, several of them
 *   together as an AggregateError.
 */
export async function planRun(
  block: unknown,
  phases: readonly PlannedPhase[],
  tried: TriedModel | null,
  evaluations: EvaluationRegistry = {},
): Promise<readonly PlannedCallback[]> {
  const names = phases.map(({ name }) => name);
  const built: BuiltPhase[] = [];
  for (const phase of phases) built.push(await buildPhase(block, phase, names, evaluations));
  const missing =
    tried === null
      ? new Map<PeriodicCallback, string>()
      : await checkItems(built, withBase(tried.outline, tried));
  const model = tried && withBase(await tried.open(), tried);
  const planned: PlannedCallback[] = [];
  for (const phase of built) {
    for (const callback of phase.callbacks) {
      const reason = missing.get(callback) ?? null;
      const look = model && reason === null ? await lookOf(callback, model, phase) : null;
      planned.push(...plannedOf(phase, callback, look, reason));
    }
  }
  return planned;
}

/** Without its adapter a model takes as long as itself. */
const withBase = (model: EvaluableModel, { isAdapted }: TriedModel): EvaluableModel =>
  isAdapted && model.base === undefined ? { ...model, base: model } : model;

interface BuiltPhase extends PlannedPhase {
  readonly callbacks: readonly PeriodicCallback[];
  readonly hasAdapterOff: boolean;
  readonly judge: PlannedJudge;
}

interface PlannedJudge {
  readonly counter: CountingJudge;
  readonly method: JudgeMethod;
  readonly price: JudgePrice | null;
}

async function buildPhase(
  block: unknown,
  phase: PlannedPhase,
  phases: readonly string[],
  evaluations: EvaluationRegistry,
): Promise<BuiltPhase> {
  let judge: PlannedJudge = { counter: countingJudge({ name: "none" }), method: "json", price: null };
  const openJudge = async (spec: string | null, told: ConfiguredJudge) => {
    judge = await plannedJudge(spec, told);
    return judge.counter;
  };
  const build = { phase: phase.name, phases, openJudge, evaluations };
  const { callbacks, session } = await buildPeriodicEval(block, build);
  return { ...phase, callbacks, hasAdapterOff: session.baseline === "adapter_off", judge };
}

/**
 * Reads what each callback asks, so that data that is missing is told of before weights are loaded.
 *
 * @returns of optional callbacks what says that their file is missing
 */
async function checkItems(
  phases: readonly BuiltPhase[],
  outline: EvaluableModel,
): Promise<ReadonlyMap<PeriodicCallback, string>> {
  const missing = new Map<PeriodicCallback, string>();
  const wrong: unknown[] = [];
  for (const callback of phases.flatMap(({ callbacks }) => callbacks)) {
    try {
      await callback.asks[0]!.items(outline as never);
    } catch (error) {
      if (callback.optional && isMissingFile(error)) missing.set(callback, errorMessage(error));
      else wrong.push(error);
    }
  }
  throwAll(wrong);
  return missing;
}

/** What a callback does in a phase, and what is measured of it without the adapter. */
function plannedOf(
  { name: phase, maxSteps, hasAdapterOff }: BuiltPhase,
  callback: PeriodicCallback,
  look: PlannedLook | null,
  missing: string | null,
): readonly PlannedCallback[] {
  const steps = plannedSteps(callback.triggers, maxSteps);
  const one = { phase, id: callback.id, steps, look, missing };
  if (missing !== null || !hasAdapterOff || !isComparedWithBase(callback)) return [one];
  return [one, { ...one, id: adapterOffId(callback.id), steps: [steps?.[0] ?? 0] }];
}

/** Of the divergence from the base there is none without the adapter. */
const isComparedWithBase = ({ on, asks }: PeriodicCallback): boolean =>
  on === "model" && asks.every(({ name }) => name !== "kl_to_base");

/** Stands in for the judge that is configured: what that would refuse of the questions, it does, in the same words. */
async function plannedJudge(
  spec: string | null,
  { method, price: told }: ConfiguredJudge,
): Promise<PlannedJudge> {
  const price = told ?? null;
  const rule = await openRule(spec);
  if (rule !== null) return { counter: countingJudge({ name: rule.name }), method: "rule", price };
  const { judgeName } = await import("@periodic-eval/remote");
  const name = judgeName(spec) ?? "not named yet";
  return { counter: countingJudge({ name, promptNames: judgePromptNames(method) }), method, price };
}

interface CountingJudge extends Grader {
  /** Asked since it was last taken. */
  take(): { readonly answers: number; readonly characters: number };
}

function countingJudge(told: Pick<Grader, "name" | "promptNames">): CountingJudge {
  let count = { answers: 0, characters: 0 };
  return {
    ...told,
    fingerprint: "counting",
    async grade(requests) {
      const characters = requests.map(({ question, answer }) => question.length + answer.length);
      count = {
        answers: count.answers + requests.length,
        characters: count.characters + characters.reduce((sum, one) => sum + one, 0),
      };
      return requests.map(() => ({ status: "graded", scores: { aligned: 50, coherent: 50 }, raw: null }));
    },
    take() {
      const taken = count;
      count = { answers: 0, characters: 0 };
      return taken;
    },
  };
}

async function lookOf(
  { asks: [evaluation] }: PeriodicCallback,
  model: EvaluableModel,
  { judge: { counter, method, price } }: BuiltPhase,
): Promise<PlannedLook> {
  const items = (await evaluation!.items(model as never)).length;
  // Of one item, then of more: what is asked once a look (anchors) is told from what each item asks.
  await measure(evaluation!, model, { limit: 1 });
  const ofOne = counter.take();
  const { snapshot } = await measure(evaluation!, model, { limit: tried });
  const ofMore = counter.take();
  const measured = Math.min(tried, items);
  const scaled = (one: number, more: number) =>
    measured === 1 ? more : Math.round(one + ((more - one) / (measured - 1)) * (items - 1));
  const { measure_seconds, tokens, items: rows } = snapshot.timing;
  const share = items / measured;
  return {
    items,
    rows: Math.round(rows * share),
    seconds: measure_seconds * share,
    tokens: tokens === null ? null : Math.round(tokens * share),
    judged: scaled(ofOne.answers, ofMore.answers),
    judgedCharacters: scaled(ofOne.characters, ofMore.characters),
    judgeMethod: method,
    judgePrice: price,
  };
}
