import * as z from "zod";
import {
  type TrainerCallback,
  type AnyEvaluation,
  type Row,
  type Awaitable,
  type Json,
  type Ability,
  type EvaluableModel,
  type Snapshot,
  PeriodicEvalError,
  canonicalJson,
  createHasher,
  hashJson,
} from "@periodic-eval/contracts";
import {
  errorMessage,
  filledString,
  isRecord,
  copyJson,
  parseOptions,
  positiveInteger,
  quoteValue,
} from "@periodic-eval/contracts/options";
import { checkIds } from "../records/grading.ts";
import { createdBy } from "../records/new-snapshot.ts";

export interface PreparedItems {
  /** Names the model: the items may depend on its tokenizer and context length. */
  readonly model: string;
  readonly items: readonly Row[];
  readonly itemsHash: string;
}

/** An evaluation that is ready to be measured. */
export interface Prepared extends PreparedItems {
  /** The model, or its base. */
  readonly target: EvaluableModel;
}

/** Keeps the items of each evaluation and model, so that `items()` runs once. */
export interface ItemsCache {
  readonly prepared: Map<AnyEvaluation, PreparedItems[]>;
  /** Starts `items` and waits for it. Default: for ever. */
  readonly settle?: <T>(where: string, what: string, call: () => Awaitable<T>) => Awaitable<T>;
}

/**
 * Checks that the model has the abilities that an evaluation needs, and makes its items, once per evaluation and model.
 *
 * @param where Names the evaluation in errors.
 * @param limit Takes only the first items.
 * @throws PeriodicEvalError `model` for a missing ability, `config` for a wrong evaluation, `data` for wrong items.
 */
export async function prepareEvaluation(
  cache: ItemsCache,
  given: EvaluableModel,
  evaluation: AnyEvaluation,
  on: "model" | "base",
  where: string,
  limit?: number,
): Promise<Prepared> {
  checkModel(given, where);
  const target = on === "base" ? given.base : given;
  if (target === undefined) {
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: `on: "base" with the model "${given.identity.name}", which has no base`,
      expected: "a model with an adapter",
      fix: 'Use on: "model", or open the model with its adapter.',
    });
  }
  const { name, version, samplesPerItem, minItems, needs } = evaluation;
  parseOptions(where, evaluationSchema, { name, version, samplesPerItem, minItems, needs });
  checkNeeds(evaluation, target, where);
  const { identity, contextLength, tokenizer } = target;
  const model = [on, identity.name, identity.engine, contextLength, tokenizer?.fingerprint].join("|");
  const known = cache.prepared.get(evaluation)?.find((entry) => entry.model === model);
  if (known !== undefined) return { ...known, target };
  const { settle = (_where, _what, call) => call() } = cache;
  // `checkNeeds` has narrowed the model.
  const all = await settle(where, "items", () => evaluation.items(target as never));
  checkIds(all, `${where} items`, "items");
  if (all.length === 0) throw noItems(where);
  // A smaller subset is a prefix: items come in that order.
  const taken = limit === undefined ? all : all.slice(0, limit);
  // First, because it reports cyclic values.
  const itemsHash = hashItems(taken, where);
  const made = { model, items: taken, itemsHash };
  cache.prepared.set(evaluation, [...(cache.prepared.get(evaluation) ?? []), made]);
  return { ...made, target };
}

const noItems = (where: string) =>
  new PeriodicEvalError({
    code: "data",
    where: `${where} items`,
    got: "no items",
    expected: "at least one",
    fix: "Check the data that items() reads.",
  });

/** Whether an error says that the questions of an optional evaluation cannot be had. */
export const lacksOptionalQuestions = (
  { optional }: AnyEvaluation,
  error: unknown,
): error is PeriodicEvalError => optional === true && PeriodicEvalError.is(error, "data");

/** @throws PeriodicEvalError `model` for a model without the form of one to measure, such as a CausalLM or a LayersModel. */
function checkModel(model: unknown, where: string): void {
  if (isRecord(model) && isRecord(model["identity"])) return;
  throw new PeriodicEvalError({
    code: "model",
    where,
    got: isRecord(model) ? "a model that cannot be measured as it is" : quoteValue(model),
    expected: "a model to measure",
    fix: "Pass inMemory(model, tokenizer) of @periodic-eval/tfjs instead of the model.",
  });
}

/** Names an evaluation of a callback in errors. */
export function evaluationPlace(callback: TrainerCallback, evaluation: AnyEvaluation): string {
  return `callback "${callback.id}", evaluation "${evaluation.name}"`;
}

/** The models that offer an ability; errors list abilities in this order. */
const offeredBy: Readonly<Record<Ability, string>> = {
  tokenizer:
    "models in memory (`inMemory(lm, tokenizer)` of @periodic-eval/tfjs) and servers opened with a tokenizer",
  logLikelihoods:
    "models in memory (`inMemory` of @periodic-eval/tfjs) and servers that return the log-probs of a prompt",
  nextToken:
    "models in memory (`inMemory` of @periodic-eval/tfjs) and servers that return the log-probs of chosen tokens",
  generate: "models in memory (`inMemory` of @periodic-eval/tfjs) and every server",
  hiddenStates: "models of @periodic-eval/models in memory, and trainers of the live protocol",
};

const abilities = Object.keys(offeredBy) as Ability[];

/** `name` and `version` are those of snapshots; `needs` decide what the evaluation sees of a model. */
const evaluationSchema = z.strictObject({
  name: filledString("a non-empty string"),
  version: filledString("a non-empty string"),
  samplesPerItem: positiveInteger
    .meta({ fix: "Count the rows that measure returns for one item." })
    .optional(),
  minItems: positiveInteger.meta({ fix: "Name the fewest items that are worth measuring." }).optional(),
  needs: z.array(z.enum(abilities)),
});

function checkNeeds({ needs }: AnyEvaluation, model: EvaluableModel, where: string): void {
  const lacking = (needs as readonly Ability[]).find((ability) => model[ability] === undefined);
  if (lacking === undefined) return;
  const has = abilities.filter((name) => model[name] !== undefined).join(", ");
  throw new PeriodicEvalError({
    code: "model",
    where,
    got: `the model "${model.identity.name}" of engine "${model.identity.engine}" with ${has === "" ? "no abilities" : has}`,
    expected: `a model with the ability "${lacking}"`,
    fix: `It is offered by ${offeredBy[lacking]}.`,
  });
}

/**
 * Returns the hash of the items' canonical JSON, without anything that JSON drops. Reads one item at a time: the JSON of all may be
 * longer than a string can be.
 */
function hashItems(items: readonly Row[], where: string): string {
  const hash = createHasher();
  const add = (text: string) => hash.update(new TextEncoder().encode(text));
  try {
    items.forEach((item, at) =>
      add(`${at === 0 ? "[" : ","}${canonicalJson(copyJson(item as unknown as Json))}`),
    );
    return add("]").digest();
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: `${where} items`,
      got: errorMessage(cause),
      expected: "items that JSON can hold",
      fix: "Remove cyclic values and BigInt from the items.",
      cause,
    });
  }
}

/**
 * Returns the data needed to repeat a measurement, without the weights: their fingerprint is stored separately. The hash is
 * therefore the same at every step of a phase, and in two phases with the same setup.
 */
export function provenanceOf(
  evaluation: AnyEvaluation,
  prepared: Prepared,
  seed: string,
): Snapshot["provenance"] {
  const { identity, contextLength, tokenizer } = prepared.target;
  const { weights: _, ...model } = identity;
  const { name, version } = evaluation;
  const facts = {
    items_hash: prepared.itemsHash,
    items: prepared.items.length,
    evaluation: evaluation.provenance?.() ?? null,
    model: { ...model, context_length: contextLength } as Json,
    tokenizer: tokenizer?.fingerprint ?? null,
    seed,
  };
  const hash = hashJson({ ...facts, name, version });
  return { hash, ...facts, created_by: createdBy };
}
