import {
  measure,
  PeriodicEvalError,
  type EvaluableModel,
  type MeasureContext,
  type MeasureOptions,
  type Metric,
} from "@periodic-eval/core";
import { parseOptions } from "@periodic-eval/core/internal";
import { metricKit, primaryMetric, summarize } from "@periodic-eval/core/evaluations";
import { z } from "zod";
import type { AnyFamily, FamilyItem, FamilyRow } from "./family.ts";
import type { OnSequence, TokenSequence } from "./token-sequence.ts";

export type Reduce = "mean" | "sum" | "none";

export interface EvaluateOptions extends Pick<MeasureOptions, "signal" | "seed" | "guards"> {
  /**
   * How samples are combined. `mean` (default) returns the primary metric, as in a snapshot: Σ values / Σ weights, for
   * perplexity the exp of that. `sum` returns Σ values (right answers, nats). `none` returns the metric of each sample, in the
   * documents' order; their mean is not `mean` if samples differ in weight, as texts do in tokens.
   */
  readonly reduce?: Reduce;
  /** Also returns the token ids. The model then needs a tokenizer. Default false. */
  readonly returnIntermediates?: boolean;
  /** The most documents measured at a time; default all. */
  readonly chunkSize?: number;
}

/** The sequences of an evaluation as one padded batch. S sequences, T tokens. */
export interface Intermediates {
  /**
   * [S] row ids, in the documents' order. A row with choices appears once per choice; a row without tokens (skipped, or from an
   * engine that returns no ids) is missing.
   */
  readonly rows: readonly string[];
  /** [S·T] token ids, row-major, right-padded with 0. */
  readonly ids: Int32Array;
  readonly shape: readonly [S: number, T: number];
  /** [S·T] 1 at a token, 0 at padding. */
  readonly paddingMask: Uint8Array;
  /** [S·T] 1 at a generated token, or at a scored token in families that do not generate. */
  readonly actionMask: Uint8Array;
}

/** Null if nothing was scored. */
type Reduced<M extends Reduce> = M extends "none" ? readonly (number | null)[] : number | null;

const optionsSchema = z.strictObject({
  reduce: z.enum(["mean", "sum", "none"]).optional(),
  returnIntermediates: z.boolean("true or false").optional(),
  chunkSize: z
    .int("a positive integer")
    .positive("a positive integer")
    .meta({ fix: "Leave it out to measure all documents at once." })
    .optional(),
  // `measure` checks these.
  signal: z.unknown().optional(),
  seed: z.unknown().optional(),
  guards: z.unknown().optional(),
} satisfies Record<keyof EvaluateOptions, z.ZodType>);

/**
 * Measures a family once and returns the value of its primary metric.
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
  parseOptions("evaluate options", optionsSchema, options);
  if (options.returnIntermediates === true) checkTokenizer(model);
  const { reduce = "mean", returnIntermediates = false, chunkSize, ...measuring } = options;
  const sequences = new Map<string, TokenSequence[]>();
  const onSequence: OnSequence = (row, sequence) =>
    void sequences.set(row, [...(sequences.get(row) ?? []), sequence]);
  let places: ReadonlyMap<string, number> = new Map();
  const watched: AnyFamily = {
    ...family,
    async items(target) {
      const items = (await family.items(target)) as readonly FamilyItem<unknown>[];
      places = new Map(items.map(({ id, at }) => [id, at]));
      return items;
    },
    measure: (target, items, context) =>
      inChunks(family, target, items, context, {
        size: chunkSize,
        ...(returnIntermediates && { onSequence }),
      }),
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
  readonly onSequence?: OnSequence;
}

async function inChunks(
  family: AnyFamily,
  model: EvaluableModel,
  items: readonly FamilyItem<unknown>[],
  context: MeasureContext,
  { size = items.length, onSequence }: Chunking,
): Promise<readonly FamilyRow[]> {
  const rows: FamilyRow[] = [];
  for (let done = 0; done < items.length; done += size) {
    const progress = (more: number) => context.progress(done + more);
    // `measure` has checked that the model has the abilities that the family needs.
    const chunk = await family.measure(
      model as never,
      items.slice(done, done + size),
      { ...context, progress },
      onSequence,
    );
    rows.push(...(chunk as readonly FamilyRow[]));
  }
  return rows;
}

function sideBySide(
  rows: readonly FamilyRow[],
  sequences: ReadonlyMap<string, readonly TokenSequence[]>,
): Intermediates {
  const all = rows.flatMap(({ id }) => (sequences.get(id) ?? []).map((sequence) => ({ id, ...sequence })));
  const length = Math.max(0, ...all.map(({ ids }) => ids.length));
  const size = all.length * length;
  const [ids, padding, action] = [new Int32Array(size), new Uint8Array(size), new Uint8Array(size)];
  for (const [at, sequence] of all.entries()) {
    ids.set(sequence.ids, at * length);
    padding.fill(1, at * length, at * length + sequence.ids.length);
    action.set(sequence.actionMask.map(Number), at * length);
  }
  return {
    rows: all.map(({ id }) => id),
    ids,
    shape: [all.length, length],
    paddingMask: padding,
    actionMask: action,
  };
}

function checkTokenizer({ tokenizer, identity }: EvaluableModel): void {
  if (tokenizer !== undefined) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "evaluate options.returnIntermediates",
    path: ["returnIntermediates"],
    got: `the model "${identity.name}", which has no tokenizer`,
    expected: "a model with a tokenizer",
    fix: "Open the model with its tokenizer, or leave returnIntermediates out.",
  });
}
