import {
  adapterOffId,
  buildPeriodicEval,
  isMissingFile,
  measure,
  messageOf,
  plannedSteps,
  type ConfiguredJudge,
  type EvaluableModel,
  type EvaluationRegistry,
  type Grader,
  type JudgePrice,
  type PeriodicCallback,
} from "@periodic-eval/core";
import { throwAll } from "./every-error.ts";

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

type JudgeMethod = ConfiguredJudge["method"];

/** The model that looks are tried on. */
export interface TriedModel {
  /** The same, whose weights need not be there: what is to be asked is read on it first. */
  readonly outline: EvaluableModel;
  readonly open: () => Promise<EvaluableModel>;
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
    tried === null ? new Map<PeriodicCallback, string>() : await checkItems(built, tried.outline);
  const model = tried && (await tried.open());
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

interface BuiltPhase extends PlannedPhase {
  readonly callbacks: readonly PeriodicCallback[];
  readonly hasAdapterOff: boolean;
  readonly counter: CountingJudge;
  readonly judge: ConfiguredJudge;
}

async function buildPhase(
  block: unknown,
  phase: PlannedPhase,
  phases: readonly string[],
  evaluations: EvaluationRegistry,
): Promise<BuiltPhase> {
  const counter = countingJudge();
  let judge: ConfiguredJudge = { method: "json" };
  const openJudge = (_: string | null, told: ConfiguredJudge) => {
    judge = told;
    return counter;
  };
  const build = { phase: phase.name, phases, openJudge, evaluations };
  const { callbacks, session } = await buildPeriodicEval(block, build);
  return { ...phase, callbacks, hasAdapterOff: session.baseline === "adapter_off", counter, judge };
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
      if (callback.optional && isMissingFile(error)) missing.set(callback, messageOf(error));
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

interface CountingJudge extends Grader {
  /** Asked since it was last taken. */
  take(): { readonly answers: number; readonly characters: number };
}

function countingJudge(): CountingJudge {
  let count = { answers: 0, characters: 0 };
  return {
    name: "counting",
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
  { counter, judge }: BuiltPhase,
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
    judgeMethod: judge.method,
    judgePrice: judge.price ?? null,
  };
}
