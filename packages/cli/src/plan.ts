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

/** Items measured to learn what one takes. */
const tried = 4;

/**
 * What a `periodic_eval` block will do, before anything runs: the steps of each phase, and with a model what a look takes,
 * learnt from its first items. No judge is asked: who grades here only counts.
 *
 * @param phases all of the run: overrides of another are refused.
 * @param evaluations what makes the block's `evaluations`
 * @throws PeriodicEvalError `config` for a wrong block; `data`, `model` for what would fail before step 1.
 */
export async function planRun(
  block: unknown,
  phases: readonly PlannedPhase[],
  model: EvaluableModel | null,
  evaluations: EvaluationRegistry = {},
): Promise<readonly PlannedCallback[]> {
  const planned: PlannedCallback[] = [];
  const names = phases.map(({ name }) => name);
  for (const { name: phase, maxSteps } of phases) {
    const counter = countingJudge();
    let judge: ConfiguredJudge = { method: "json" };
    const openJudge = (_: string | null, told: ConfiguredJudge) => {
      judge = told;
      return counter;
    };
    const build = { phase, phases: names, openJudge, evaluations };
    const { callbacks, session } = await buildPeriodicEval(block, build);
    for (const callback of callbacks) {
      const steps = plannedSteps(callback.triggers, maxSteps);
      const one = { phase, id: callback.id, steps, missing: null };
      try {
        const look = model && {
          ...(await lookOf(callback, model, counter)),
          judgeMethod: judge.method,
          judgePrice: judge.price ?? null,
        };
        planned.push({ ...one, look });
        if (session.baseline === "adapter_off" && hasAdapterOff(callback))
          planned.push({ ...one, id: adapterOffId(callback.id), steps: [steps?.[0] ?? 0], look });
      } catch (error) {
        if (!callback.optional || !isMissingFile(error)) throw error;
        planned.push({ ...one, look: null, missing: messageOf(error) });
      }
    }
  }
  return planned;
}

/** Of the divergence from the base there is none without the adapter. */
const hasAdapterOff = ({ on, asks }: PeriodicCallback): boolean =>
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
  counter: CountingJudge,
): Promise<Omit<PlannedLook, "judgeMethod" | "judgePrice">> {
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
  };
}
