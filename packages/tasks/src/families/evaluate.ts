import {
  measure,
  PeriodicEvalError,
  type EvaluableModel,
  type MeasureContext,
  type MeasureOptions,
  type Metric,
} from "@periodic-eval/core";
import { checkKeys, checkWord, isCount, quoteValue } from "@periodic-eval/core/internal";
import { metricKit, primaryMetric, summarize } from "@periodic-eval/core/evaluations";
import type { AnyFamily, FamilyItem, FamilyRow } from "./family.ts";
import type { Tell, TokenSequence } from "./token-sequence.ts";

export type Reduce = "mean" | "sum" | "none";

export interface EvaluateOptions extends Pick<MeasureOptions, "signal" | "seed" | "guards"> {
  /**
   * What becomes of the samples. `mean` (default): the primary metric as a snapshot tells it (Σ of what they add over Σ of
   * what it is counted by; of perplexity exp of that); `sum`: Σ of what they add (right answers, nats); `none`: the
   * metric of each sample by itself, in the documents' order. The mean of these is not `mean` where samples differ in
   * weight, as texts do in tokens.
   */
  readonly reduce?: Reduce;
  /** Also gives the token ids; the model then needs a tokenizer. */
  readonly returnIntermediates?: boolean;
  /** Documents measured at a time, at most; default all. */
  readonly chunkSize?: number;
}

/** The sequences of an evaluation side by side, as a training batch. S sequences, T tokens. */
export interface Intermediates {
  /** [S] ids of the rows, in the documents' order; of a row with choices once a choice. A row without tokens (not asked, or written by an engine that does not tell them) has none. */
  readonly rows: readonly string[];
  /** [S·T] token ids, row-major, right-padded with 0. */
  readonly ids: Int32Array;
  readonly shape: readonly [S: number, T: number];
  /** [S·T] 1 at a token, 0 at padding. */
  readonly paddingMask: Uint8Array;
  /** [S·T] 1 at a token that was generated; of families that generate nothing, at one that is scored. */
  readonly actionMask: Uint8Array;
}

/** Null where nothing was scored. */
type Reduced<M extends Reduce> = M extends "none" ? readonly (number | null)[] : number | null;

const known = ["reduce", "returnIntermediates", "chunkSize", "signal", "seed", "guards"];

/**
 * Runs a family by itself, and gives its primary metric.
 *
 *     await evaluate(sums, model); // 0.5
 *     await evaluate(sums, model, { reduce: "none" }); // [1, 0, null, 1]
 *
 * @throws PeriodicEvalError `config` for a wrong option; and as `measure`.
 */
export async function evaluate<const M extends Reduce = "mean">(
  family: AnyFamily,
  model: EvaluableModel,
  options: EvaluateOptions & { readonly reduce?: M; readonly returnIntermediates: true },
): Promise<{ readonly value: Reduced<M>; readonly intermediates: Intermediates }>;
export async function evaluate<const M extends Reduce = "mean">(
  family: AnyFamily,
  model: EvaluableModel,
  options?: EvaluateOptions & { readonly reduce?: M; readonly returnIntermediates?: false },
): Promise<Reduced<M>>;
export async function evaluate(
  family: AnyFamily,
  model: EvaluableModel,
  options: EvaluateOptions = {},
): Promise<Reduced<Reduce> | { readonly value: Reduced<Reduce>; readonly intermediates: Intermediates }> {
  check(model, options);
  const { reduce = "mean", returnIntermediates = false, chunkSize, ...measuring } = options;
  const sequences = new Map<string, TokenSequence[]>();
  const tell: Tell = (row, sequence) => void sequences.set(row, [...(sequences.get(row) ?? []), sequence]);
  let places: ReadonlyMap<string, number> = new Map();
  const watched: AnyFamily = {
    ...family,
    async items(target) {
      const items = (await family.items(target)) as readonly FamilyItem<unknown>[];
      places = new Map(items.map(({ id, at }) => [id, at]));
      return items;
    },
    measure: (target, items, context) =>
      inChunks(family, target, items, context, { size: chunkSize, ...(returnIntermediates && { tell }) }),
  };
  const { snapshot, rows } = await measure(watched, model, measuring);
  const ordered = (rows as readonly FamilyRow[]).toSorted(
    (a, b) => places.get(a.item)! - places.get(b.item)!,
  );
  const metrics = family.metrics(metricKit()) as Readonly<Record<string, Metric<FamilyRow>>>;
  const name = primaryMetric(metrics)!;
  const value = reduce === "mean" ? snapshot.metrics[name]!.value : reduced(metrics[name]!, ordered, reduce);
  return returnIntermediates ? { value, intermediates: sideBySide(ordered, sequences) } : value;
}

function reduced(
  metric: Metric<FamilyRow>,
  rows: readonly FamilyRow[],
  reduce: "sum" | "none",
): number | null | readonly (number | null)[] {
  if (reduce === "none") return rows.map((row) => summarize({ alone: metric }, [row])["alone"]!.value);
  const seen = rows.flatMap((row) => metric.observe(row) ?? []);
  return seen.length === 0 ? null : seen.reduce((sum, { value }) => sum + value, 0);
}

interface Chunking {
  readonly size: number | undefined;
  readonly tell?: Tell;
}

async function inChunks(
  family: AnyFamily,
  model: EvaluableModel,
  items: readonly FamilyItem<unknown>[],
  context: MeasureContext,
  { size = items.length, tell }: Chunking,
): Promise<readonly FamilyRow[]> {
  const rows: FamilyRow[] = [];
  for (let done = 0; done < items.length; done += size) {
    const progress = (more: number) => context.progress(done + more);
    // `measure` has checked that the model can do what the family needs.
    const chunk = await family.measure(
      model as never,
      items.slice(done, done + size),
      { ...context, progress },
      tell,
    );
    rows.push(...(chunk as readonly FamilyRow[]));
  }
  return rows;
}

function sideBySide(
  rows: readonly FamilyRow[],
  sequences: ReadonlyMap<string, readonly TokenSequence[]>,
): Intermediates {
  const told = rows.flatMap(({ id }) => (sequences.get(id) ?? []).map((sequence) => ({ id, ...sequence })));
  const length = Math.max(0, ...told.map(({ ids }) => ids.length));
  const size = told.length * length;
  const [ids, padding, action] = [new Int32Array(size), new Uint8Array(size), new Uint8Array(size)];
  for (const [at, sequence] of told.entries()) {
    ids.set(sequence.ids, at * length);
    padding.fill(1, at * length, at * length + sequence.ids.length);
    action.set(sequence.actionMask.map(Number), at * length);
  }
  return {
    rows: told.map(({ id }) => id),
    ids,
    shape: [told.length, length],
    paddingMask: padding,
    actionMask: action,
  };
}

function check(model: EvaluableModel, options: EvaluateOptions): void {
  checkKeys("evaluate", options, known);
  const { reduce, chunkSize, returnIntermediates } = options;
  if (reduce !== undefined) checkWord("evaluate reduce", reduce, ["mean", "sum", "none"]);
  if (chunkSize !== undefined && !isCount(chunkSize, 1)) {
    throw new PeriodicEvalError({
      code: "config",
      where: "evaluate chunkSize",
      got: quoteValue(chunkSize),
      expected: "a whole number of 1 or more",
      fix: "Leave it out to measure all at once.",
    });
  }
  if (returnIntermediates === true && model.tokenizer === undefined) {
    throw new PeriodicEvalError({
      code: "model",
      where: "evaluate returnIntermediates",
      got: `the model "${model.identity.name}", which shows no tokenizer`,
      expected: "a model with a tokenizer",
      fix: "Open the model with its tokenizer, or do without the tokens.",
    });
  }
}
