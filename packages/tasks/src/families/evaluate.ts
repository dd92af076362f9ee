import {
  measure,
  type AnyEvaluation,
  type EvaluableModel,
  type MeasureContext,
  type Metric,
  type Row,
} from "@periodic-eval/core";
import { configError, isRecord, modelError } from "@periodic-eval/contracts/options";
import { metricKit, primaryMetric, summarize } from "@periodic-eval/core/evaluations";
import {
  readEvaluateOptions,
  type CallSampling,
  type Evaluable,
  type Evaluated,
  type EvaluateMethod,
  type EvaluateOptions,
  type OptionsWithReduce,
  type OtherOptions,
  type Reduce,
  type WithIntermediates,
} from "./evaluate-options.ts";
import type { AnyFamily, FamilyParts, OnSequence, TokenSequence } from "./family.ts";

const where = "evaluate";

/** A row of a family names its item; a row of another evaluation has the item's id. */
type ItemRow = Row & { readonly item?: string };

/**
 * Measures an evaluation once and returns the value of its primary metric. It is also the method `evaluate` of each family.
 *
 * @throws PeriodicEvalError `config` for a wrong option, and for sampling that the evaluation cannot take; and as `measure`.
 */
export async function evaluate<const M extends Reduce = "mean", const I extends boolean = false>(
  evaluation: AnyEvaluation,
  model: Evaluable,
  options?: OptionsWithReduce<M, I>,
): Promise<Evaluated<M, I>>;
export async function evaluate<const M extends Reduce, const I extends boolean = false>(
  evaluation: AnyEvaluation,
  model: Evaluable,
  reduce: M,
  options?: OtherOptions<I>,
): Promise<Evaluated<M, I>>;
export async function evaluate(
  evaluation: AnyEvaluation,
  target: Evaluable,
  ...args: readonly [first?: Reduce | EvaluateOptions, second?: EvaluateOptions]
): Promise<Evaluated<Reduce, boolean>> {
  const options = readEvaluateOptions(where, ...args);
  checkEvaluation(evaluation);
  const model = modelOf(target);
  const { reduce = "mean", returnIntermediates = false, chunkSize, signal, guards, ...sampling } = options;
  if (returnIntermediates) checkIntermediates(evaluation, model);
  const sampled = withSampling(where, evaluation, sampling);
  const sequences = new Map<string, TokenSequence>();
  const onSequence: OnSequence | undefined = returnIntermediates
    ? (row, sequence) => void sequences.set(row, sequence)
    : undefined;
  let places: ReadonlyMap<string, number> = new Map();
  const watched: AnyEvaluation = {
    ...sampled,
    async items(model) {
      const items = (await sampled.items(model)) as readonly (Row & { readonly at?: number })[];
      places = new Map(items.map(({ id, at }, index) => [id, at ?? index]));
      return items;
    },
    measure: (model, items, context) =>
      inChunks(sampled, model, items, context, chunkSize ?? items.length, onSequence),
  };
  const { snapshot, rows } = await measure(watched, model, {
    ...(signal && { signal }),
    ...(guards && { guards }),
    ...(sampling.seed !== undefined && { seed: String(sampling.seed) }),
  });
  const placeOf = ({ id, item = id }: ItemRow) => places.get(item) ?? places.size;
  const ordered = rows.toSorted((a, b) => placeOf(a) - placeOf(b));
  const metrics = sampled.metrics(metricKit()) as Readonly<Record<string, Metric<Row>>>;
  const name = primaryMetric(metrics)!;
  const scores = () => ordered.map((row) => summarize({ alone: metrics[name]! }, [row])["alone"]!.value);
  const value =
    reduce === "mean" ? snapshot.metrics[name]!.value : reduce === "none" ? scores() : sumOfKnown(scores());
  return returnIntermediates ? { value, ...sideBySide(ordered, sequences) } : value;
}

/**
 * Returns the method `evaluate` of a family. It also works without its object: `const { evaluate } = family`. A copy of the
 * family with other fields measures the copy.
 */
export const evaluateMethodOf = (family: () => AnyEvaluation): EvaluateMethod =>
  function (this: unknown, model: Evaluable, ...options: readonly EvaluateOptions[]) {
    const evaluation = isRecord(this) && "measure" in this ? (this as unknown as AnyEvaluation) : family();
    return evaluate(evaluation, model, ...(options as readonly [EvaluateOptions?]));
  } as EvaluateMethod;

/** Returns a family of its fields, with the method `evaluate`. */
export function familyOf<F extends AnyFamily>(
  common: FamilyParts<Row>["common"],
  fields: Omit<F, keyof typeof common | "evaluate">,
): F {
  const family = { ...common, ...fields, evaluate: evaluateMethodOf(() => family) } as unknown as F;
  return family;
}

/**
 * Returns the evaluation with the given sampling; the seed is left to `measure`.
 *
 * @param where The function that received the sampling, for errors.
 * @throws PeriodicEvalError `config` if the evaluation does not generate, or generates in its own way; and for sampling that the
 *   family refuses.
 */
export function withSampling(
  where: string,
  evaluation: AnyEvaluation,
  sampling: CallSampling,
): AnyEvaluation {
  const { seed: _, ...rest } = sampling;
  const entries = Object.entries(rest).filter(([, value]) => value !== undefined);
  const [first] = entries;
  if (first === undefined) return evaluation;
  const family = evaluation as Partial<AnyFamily>;
  if (family.withSampling !== undefined) return family.withSampling(where, Object.fromEntries(entries));
  const [name, value] = first;
  const generates = (evaluation.needs as readonly string[]).includes("generate");
  throw configError({
    where: `${where} options`,
    path: [name],
    got: `${name} ${value} for "${evaluation.name}", which ${generates ? "sets its own sampling" : "does not generate"}`,
    expected: "no sampling options",
    fix: generates ? "Leave it out, or build the evaluation with `rolloutEvaluation`." : "Leave it out.",
  });
}

/** Returns the sum of the known scores; null if there is none. */
export function sumOfKnown(scores: readonly (number | null)[]): number | null {
  const known = scores.filter((score) => score !== null);
  return known.length === 0 ? null : known.reduce((sum, score) => sum + score, 0);
}

async function inChunks(
  family: Pick<AnyFamily, "measure">,
  model: EvaluableModel,
  items: readonly Row[],
  context: MeasureContext,
  size: number,
  onSequence: OnSequence | undefined,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (let done = 0; done < items.length; done += size) {
    const progress = (more: number) => context.progress(done + more);
    // `measure` has checked that the model has the abilities that the family needs.
    const chunk = await family.measure(
      model as never,
      items.slice(done, done + size),
      { ...context, progress },
      onSequence,
    );
    rows.push(...(chunk as readonly Row[]));
  }
  return rows;
}

function sideBySide(
  rows: readonly Row[],
  sequences: ReadonlyMap<string, TokenSequence>,
): Omit<WithIntermediates<never>, "value"> {
  const all = rows.map(({ id }) => sequences.get(id) ?? { ids: [], actionMask: [] });
  const length = Math.max(0, ...all.map(({ ids }) => ids.length));
  const padded = <A extends Int32Array | Uint8Array>(array: A, values: readonly number[]): A => {
    array.set(values);
    return array;
  };
  return {
    intermediates: all.map(({ ids }) => [
      padded(new Int32Array(length), ids),
      new Uint8Array(length).fill(1, 0, ids.length),
    ]),
    actionMasks: all.map(({ actionMask }) => padded(new Uint8Array(length), actionMask.map(Number))),
  };
}

function modelOf(target: Evaluable): EvaluableModel {
  const model: unknown = isRecord(target) && "evaluableModel" in target ? target.evaluableModel : target;
  if (isRecord(model) && "identity" in model) return model as unknown as EvaluableModel;
  throw configError({
    where,
    value: target,
    expected: "a model, or a trainer with an `evaluableModel`",
    fix: "Give a trainer, `inMemory(model, tokenizer)`, or the `model` of an opened checkpoint.",
  });
}

function checkEvaluation(evaluation: unknown): void {
  if (isRecord(evaluation) && "measure" in evaluation) return;
  const isTask = isRecord(evaluation) && "open" in evaluation;
  throw configError({
    where,
    ...(isTask ? { got: `the task "${String(evaluation["name"])}"` } : { value: evaluation }),
    expected: "an evaluation",
    fix: isTask
      ? "Open the task with its data, task.open({ data }), or give it to an Evaluator."
      : "Give an evaluation such as rolloutEvaluation(…), then the model.",
  });
}

function checkIntermediates(evaluation: AnyEvaluation, { tokenizer, identity }: EvaluableModel): void {
  // Only families report their tokens, and only they have the method.
  if (!("evaluate" in evaluation))
    throw configError({
      where: "evaluate options",
      path: ["returnIntermediates"],
      got: `true for "${evaluation.name}", which does not report its tokens`,
      expected: "an evaluation of a task family, such as rolloutEvaluation",
      fix: "Leave it out, or build the evaluation with a task family.",
    });
  if (tokenizer !== undefined) return;
  throw modelError(
    "evaluate options.returnIntermediates",
    `the model "${identity.name}", which has no tokenizer`,
    "a model with a tokenizer",
    "Open the model with its tokenizer, or leave returnIntermediates out.",
  );
}
