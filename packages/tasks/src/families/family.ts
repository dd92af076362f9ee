import {
  PeriodicEvalError,
  type Ability,
  type Awaitable,
  type Evaluation,
  type Json,
  type MeasureContext,
  type Metric,
  type MetricKit,
  type MetricOptions,
  type Prompt,
  type Row,
  type ModelWith,
} from "@periodic-eval/core";
import { checkKeys, quoteValue } from "@periodic-eval/core/internal";
import { nestedSubset, type Subsample } from "@periodic-eval/core/evaluations";
import type { Tell } from "./token-sequence.ts";

/** Documents, and what provenance says of where they are from. */
export interface Documents<D> {
  readonly documents: readonly D[];
  readonly provenance: Json;
}

/** What every family takes. A document is a row of data with an id; what JSON drops of it does not count. */
export interface FamilyOptions<D extends Row> {
  readonly name: string;
  /** Changes when the same answers would give other numbers; default "1". */
  readonly version?: string;
  /** Put before the name of each metric: `"val_"` gives `val_accuracy`. */
  readonly prefix?: string;
  /** In their order; a function is asked anew each time. */
  readonly documents: readonly D[] | (() => Awaitable<readonly D[] | Documents<D>>);
  /** The first n of the documents' seeded order, the same at every look; null (default) for all of them. */
  readonly subsample?: Subsample;
  /** Metrics are also told of each group, as `metric/group`; null is in none. */
  readonly by?: (document: D) => string | readonly string[] | null;
  /** What else changes a number: what `clean` does, the source of a prompt. */
  readonly provenance?: Json;
}

/** A document that is asked. */
export interface FamilyItem<D> extends Row {
  /** Its place among the documents, from 0. */
  readonly at: number;
  readonly groups: readonly string[];
  readonly document: D;
}

export interface FamilyRow extends Row {
  /** The document's id. */
  readonly item: string;
  readonly groups: readonly string[];
}

/** An evaluation of documents: of a `PeriodicCallback`, of `measure`, and by itself (`evaluate`). */
export interface Family<
  D extends Row,
  I extends FamilyItem<D>,
  R extends FamilyRow,
  A extends Ability,
  G extends R = R,
> extends Evaluation<I, R, G, A> {
  /** How many documents it asks. */
  length(): Promise<number>;
  measure(
    model: ModelWith<A>,
    items: readonly I[],
    context: MeasureContext,
    tell?: Tell,
  ): Promise<readonly R[]>;
}

// oxlint-disable-next-line typescript/no-explicit-any -- families of every document and row type
export type AnyFamily = Family<any, any, any, any, any>;

const commonOptions = ["name", "version", "prefix", "documents", "subsample", "by", "provenance"];

/** Seed of the order where all documents are asked: a budget may still cut them. */
const seedOfAll = 42;

/** What a family is made of, whatever it asks of its documents. */
export interface FamilyParts<D extends Row> {
  readonly name: string;
  readonly version: string;
  readonly length: () => Promise<number>;
  /** In the order in which a smaller budget would take them. */
  readonly items: () => Promise<readonly FamilyItem<D>[]>;
  /** The document of a row, read again where nobody asked for the items yet. */
  readonly documentOf: (id: string) => Promise<D>;
  /** `example` is the first prompt as text. */
  readonly provenance: (how: Readonly<Record<string, Json>>, example: string | null) => Json;
  /** A kit whose metrics have the family's groups, and `options` where they do not say otherwise; their names the prefix. */
  readonly metrics: <G extends FamilyRow>(
    kit: MetricKit<G>,
    options: MetricOptions<G>,
    make: (kit: MetricKit<G>) => Readonly<Record<string, Metric<G>>>,
  ) => Readonly<Record<string, Metric<G>>>;
}

/**
 * @param where the function's name, for errors
 * @param own the names of its own options
 * @throws PeriodicEvalError `config` for an option that does not exist, or a common one that is wrong
 */
export function familyParts<D extends Row>(
  where: string,
  options: FamilyOptions<D>,
  own: readonly string[],
): FamilyParts<D> {
  checkKeys(where, options, [...commonOptions, ...own]);
  checkCommon(where, options);
  const { name, version = "1", prefix = "", documents, subsample = null, by } = options;
  let source: Json = null;
  let known: ReadonlyMap<string, D> | null = null;
  const read = async (): Promise<readonly D[]> => {
    const given = typeof documents === "function" ? await documents() : documents;
    const isList = Array.isArray(given);
    const list = isList ? (given as readonly D[]) : (given as Documents<D>).documents;
    source = isList ? null : (given as Documents<D>).provenance;
    known = new Map(list.map((document) => [document.id, document]));
    return list;
  };
  return {
    name,
    version,
    length: async () => Math.min((await read()).length, subsample?.n ?? Infinity),
    async items() {
      const all = (await read()).map((document, at) => ({
        id: document.id,
        at,
        groups: groupsOf(by?.(document) ?? null),
        document,
      }));
      return nestedSubset(all, subsample ?? { n: null, seed: seedOfAll });
    },
    async documentOf(id) {
      if (known === null) await read();
      const document = known!.get(id);
      if (document !== undefined) return document;
      throw new PeriodicEvalError({
        code: "data",
        where: `${name} row of "${id}"`,
        got: "an id that no document has",
        expected: "rows of these documents",
        fix: "Grade the rows with the documents that they were measured on.",
      });
    },
    provenance: (how, example) => ({
      documents: source,
      subsample,
      ...how,
      own: options.provenance ?? null,
      example_prompt: example,
    }),
    metrics: (kit, defaults, make) => {
      const made = make(kitWith(kit, { by: ({ groups }) => groups, ...defaults }));
      return Object.fromEntries(Object.entries(made).map(([key, metric]) => [`${prefix}${key}`, metric]));
    },
  };
}

const groupsOf = (groups: string | readonly string[] | null): readonly string[] =>
  groups === null ? [] : typeof groups === "string" ? [groups] : groups;

const kitWith = <G extends Row>(kit: MetricKit<G>, defaults: MetricOptions<G>): MetricKit<G> => ({
  rate: (hit, options) => kit.rate(hit, { ...defaults, ...options }),
  mean: (value, options) => kit.mean(value, { ...defaults, ...options }),
  ratio: (parts, options) => kit.ratio(parts, { ...defaults, ...options }),
  contrast: (of, isFirst) => kit.contrast(of, isFirst),
});

function checkCommon(
  where: string,
  options: { readonly documents: unknown; readonly prefix?: unknown; readonly subsample?: Subsample },
): void {
  const { documents, prefix, subsample } = options;
  const refuse = (option: string, got: unknown, expected: string, fix: string) => {
    throw new PeriodicEvalError({
      code: "config",
      where: `${where}.${option}`,
      got: quoteValue(got),
      expected,
      fix,
    });
  };
  if (!Array.isArray(documents) && typeof documents !== "function")
    refuse(
      "documents",
      documents,
      "a list of documents, or a function that gives one",
      "Read the file first.",
    );
  if (prefix !== undefined && typeof prefix !== "string")
    refuse("prefix", prefix, "a text", "Leave it out for none.");
  if (subsample !== undefined && subsample !== null)
    checkKeys(`${where}.subsample`, subsample, ["n", "seed"]);
}

/** What a family's `prompt` may give: a text is asked as it is. */
export type Asked = string | Prompt;

export const promptOf = (asked: Asked): Prompt => (typeof asked === "string" ? { text: asked } : asked);
