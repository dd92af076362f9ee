import * as z from "zod";
import { dataError, functionSchema, parseOptions, positiveInteger } from "@periodic-eval/contracts/options";
import type {
  Ability,
  Awaitable,
  Evaluation,
  Json,
  MeasureContext,
  Metric,
  MetricKit,
  MetricOptions,
  Prompt,
  Row,
  ModelWith,
} from "@periodic-eval/core";
import { requireMetrics, nestedSubset, type Subsample } from "@periodic-eval/core/evaluations";
import type { CallSampling, EvaluateMethod } from "./evaluate-options.ts";

/** Documents and their source, for provenance. */
export interface Documents<D> {
  readonly documents: readonly D[];
  readonly provenance: Json;
}

/** Options of every family. A document is a row of data with an id; fields that JSON drops are ignored. */
export interface FamilyOptions<D extends Row> {
  readonly name: string;
  /** Must change when the same answers would give other numbers; default "1". */
  readonly version?: string;
  /** Prefix of each metric's name: `"val_"` gives `val_accuracy`. */
  readonly prefix?: string;
  /** The documents, in their order. A function is called at each measurement. */
  readonly documents: readonly D[] | (() => Awaitable<readonly D[] | Documents<D>>);
  /** The first n of the documents' seeded order, the same at every measurement; null (default) for all. */
  readonly subsample?: Subsample;
  /** The groups of a document; null for none. Metrics are also computed per group, as `metric/group`. */
  readonly by?: (document: D) => string | readonly string[] | null;
  /** Anything else that changes a number, such as the source of a prompt or what `clean` does. */
  readonly provenance?: Json;
}

/** An item to measure, made from a document. */
export interface FamilyItem<D> extends Row {
  /** The document's index, from 0. */
  readonly at: number;
  readonly groups: readonly string[];
  readonly document: D;
}

export interface FamilyRow extends Row {
  /** The document's id. */
  readonly item: string;
  readonly groups: readonly string[];
}

/**
 * An evaluation of documents. `PeriodicCallback` and `measure` take it; `evaluate` measures it at once, on a trainer's
 * `evaluableModel`, an opened checkpoint or a served model:
 *
 *     await sums.evaluate(model); // 0.5
 *     await sums.evaluate(model, { reduce: "none", temperature: 1, seed: 7 }); // [1, 0, null, 1]
 */
export interface Family<
  D extends Row,
  I extends FamilyItem<D>,
  R extends FamilyRow,
  A extends Ability,
  G extends R = R,
> extends Evaluation<I, R, G, A> {
  /** Returns how many documents it measures. */
  length(): Promise<number>;
  /**
   * Measures the evaluation once and returns the value of its primary metric.
   *
   * @throws PeriodicEvalError `config` for a wrong option, and for sampling if the evaluation does not generate; and as `measure`.
   */
  readonly evaluate: EvaluateMethod;
  /**
   * Returns the same evaluation with other sampling, recorded in its provenance. Missing in evaluations that do not generate.
   *
   * @param where The function that received the sampling, for errors.
   */
  withSampling?(where: string, sampling: Omit<CallSampling, "seed">): Family<D, I, R, A, G>;
  measure(
    model: ModelWith<A>,
    items: readonly I[],
    context: MeasureContext,
    onSequence?: OnSequence,
  ): Promise<readonly R[]>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- families of every document and row type
export type AnyFamily = Family<any, any, any, any, any>;

/** Schema of an option that is a function of a document. */
export const documentFunction = functionSchema("a function of a document");
const isDocuments = (value: unknown) => Array.isArray(value) || typeof value === "function";

const commonShape = {
  name: z.string(),
  version: z.string().optional(),
  prefix: z.string().optional(),
  documents: z
    .custom(isDocuments, "an array of documents, or a function that returns one")
    .meta({ fix: "Read the file first." }),
  subsample: z
    .strictObject({
      n: positiveInteger,
      seed: z.int("an integer"),
    })
    .nullable()
    .optional(),
  by: documentFunction.optional(),
  provenance: z.unknown().optional(),
} satisfies Record<keyof FamilyOptions<Row>, z.ZodType>;

/** Seed of the order in which all documents are measured: a budget may still cut them. */
const seedOfAll = 42;

/** The parts that all families share. */
export interface FamilyParts<D extends Row> {
  readonly name: string;
  /** The fields that are equal in all families. */
  readonly common: Pick<AnyFamily, "name" | "version" | "length" | "provenance">;
  /** Items in the order in which a smaller budget takes them. */
  readonly items: () => Promise<readonly FamilyItem<D>[]>;
  /** Returns the document of a row; reads the documents if `items` has not run yet. */
  readonly documentOf: (id: string) => Promise<D>;
  /** Records how items are measured, for provenance. `example` is the first prompt as text. */
  readonly describe: (how: Readonly<Record<string, Json>>, example: string | null) => void;
  /** Makes metrics with a kit that adds the family's groups and default `options`, and prefixes their names. */
  readonly metrics: <G extends FamilyRow>(
    kit: MetricKit<G>,
    options: MetricOptions<G>,
    make: (kit: MetricKit<G>) => Readonly<Record<string, Metric<G>>>,
  ) => Readonly<Record<string, Metric<G>>>;
}

/**
 * Checks a family's options and returns the parts that all families share.
 *
 * @param where The function's name, for errors.
 * @param ownShape Schemas of the options that only this family has.
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function familyParts<D extends Row>(
  where: string,
  options: FamilyOptions<D>,
  ownShape: z.ZodRawShape,
): FamilyParts<D> {
  parseOptions(`${where} options`, z.strictObject({ ...commonShape, ...ownShape }), options);
  const { name, version = "1", prefix = "", documents, subsample = null, by } = options;
  let source: Json = null;
  let provenance: Json = null;
  let known: ReadonlyMap<string, D> | null = null;
  const read = async (): Promise<readonly D[]> => {
    const loaded = typeof documents === "function" ? await documents() : documents;
    const isList = Array.isArray(loaded);
    const list = isList ? (loaded as readonly D[]) : (loaded as Documents<D>).documents;
    source = isList ? null : (loaded as Documents<D>).provenance;
    known = new Map(list.map((document) => [document.id, document]));
    return list;
  };
  return {
    name,
    common: {
      name,
      version,
      length: async () => Math.min((await read()).length, subsample?.n ?? Infinity),
      provenance: () => provenance,
    },
    async items() {
      const all = (await read()).map((document, at) => ({
        id: document.id,
        at,
        groups: [by?.(document) ?? []].flat(),
        document,
      }));
      return nestedSubset(all, subsample ?? { n: null, seed: seedOfAll });
    },
    async documentOf(id) {
      if (known === null) await read();
      const document = known!.get(id);
      if (document !== undefined) return document;
      const fix = "Grade the rows with the documents that they were measured on.";
      throw dataError(`${name} row of "${id}"`, "an id that no document has", "rows of these documents", fix);
    },
    describe(how, example) {
      provenance = {
        documents: source,
        subsample,
        ...how,
        own: options.provenance ?? null,
        example_prompt: example,
      };
    },
    metrics: (kit, defaults, make) => {
      const made = requireMetrics(
        `task "${name}" metrics`,
        make(kitWith(kit, { by: ({ groups }) => groups, ...defaults })),
      );
      return Object.fromEntries(Object.entries(made).map(([key, metric]) => [`${prefix}${key}`, metric]));
    },
  };
}

const kitWith = <G extends Row>(kit: MetricKit<G>, defaults: MetricOptions<G>): MetricKit<G> => ({
  rate: (hit, options) => kit.rate(hit, { ...defaults, ...options }),
  mean: (value, options) => kit.mean(value, { ...defaults, ...options }),
  ratio: (parts, options) => kit.ratio(parts, { ...defaults, ...options }),
  contrast: (of, isFirst) => kit.contrast(of, isFirst),
});

/** A prompt, or a string that is used as plain text. */
export type PromptInput = string | Prompt;

export const promptOf = (asked: PromptInput): Prompt => (typeof asked === "string" ? { text: asked } : asked);

/** The tokens of one sequence that was scored or generated. */
export interface TokenSequence {
  readonly ids: readonly number[];
  /** One per id: true for generated tokens, or for scored tokens in families that do not generate. */
  readonly actionMask: readonly boolean[];
}

/** Receives the sequence of a row, one per sample that the model answered. The model has a tokenizer. */
export type OnSequence = (row: string, sequence: TokenSequence) => void;

/** Joins a context and the tokens that were generated or scored after it. */
export function sequenceOf(context: readonly number[], action: readonly number[]): TokenSequence {
  const ids = [...context, ...action];
  return { ids, actionMask: ids.map((_, at) => at >= context.length) };
}
