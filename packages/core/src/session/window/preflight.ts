import type { TrainerCallback } from "../../contracts/callback.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import type { AnyEvaluation, Row } from "../../contracts/evaluation.ts";
import { isCount } from "../../internal/is-count.ts";
import type { Json } from "../../contracts/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import type { Ability, EvaluableModel } from "../../contracts/model.ts";
import { nearest } from "../../internal/nearest.ts";
import { hashJson } from "../../random/hash.ts";
import type { PreparedItems, Run } from "../run.ts";

/** An evaluation made ready for a model. */
export interface Prepared extends PreparedItems {
  readonly target: EvaluableModel;
}

/** Who offers an ability; the key order is the order in which errors list them. */
const offeredBy: Readonly<Record<Ability, string>> = {
  tokenizer:
    "models in memory (`inMemory(lm, tokenizer)` of @periodic-eval/core/tfjs) and servers opened with a tokenizer",
  logLikelihoods:
    "models in memory (`inMemory` of @periodic-eval/core/tfjs) and servers that return the log-probs of a prompt",
  nextToken:
    "models in memory (`inMemory` of @periodic-eval/core/tfjs) and servers that return the log-probs of chosen tokens",
  generate: "models in memory (`inMemory` of @periodic-eval/core/tfjs) and every server",
};

/**
 * Everything that callbacks say they will ask is checked before step 1: the abilities, the data, the items' ids and the graders.
 * A missing file of an optional callback becomes one warning, and a `skipped` record wherever it would have fired.
 * Of the model's own numbers only a few are looked at (`check`): what only its longest batch shows (no memory for it)
 * becomes a `failed` record of the first measurement, which by default is the one before step 1.
 */
export async function preflight(run: Run): Promise<void> {
  const given = await modelOf(run);
  const checked = new Set<unknown>();
  const checkOnce = async (one: Checked) => {
    if (!checked.has(one)) await checkUnlessAborted(one, run.signal);
    checked.add(one);
  };
  for (const callback of run.callbacks) {
    for (const evaluation of callback.asks ?? []) {
      try {
        const on = callback.on ?? "model";
        const { target } = await prepareEvaluation(run, given, evaluation, on, whereOf(callback, evaluation));
        await checkOnce(target);
        await checkOnce(evaluation);
      } catch (error) {
        if (callback.optional !== true || !isMissingFile(error)) throw error;
        const reason = errorMessage(error);
        run.unavailable.set(evaluation, reason);
        run.telling.warn(`callback "${callback.id}"`, `is optional and will be skipped: ${reason}`);
      }
    }
  }
}

type Checked = Pick<EvaluableModel, "check">;

/** An abort in the middle is no fault of the model, or of what grades. */
async function checkUnlessAborted(one: Checked, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  try {
    await one.check?.({ signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** The model as it now is. */
export async function modelOf({
  options,
  progress,
}: Pick<Run, "options" | "progress">): Promise<EvaluableModel> {
  return typeof options.model === "function" ? options.model(progress) : options.model;
}

/** Checks the model's abilities and makes the items, once per evaluation and model. */
export async function prepareEvaluation(
  cache: Pick<Run, "prepared">,
  given: EvaluableModel,
  evaluation: AnyEvaluation,
  on: "model" | "base",
  where: string,
  limit?: number,
): Promise<Prepared> {
  const target = on === "base" ? given.base : given;
  if (target === undefined) {
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: `on: "base" with the model "${given.identity.name}", which has no base`,
      expected: "a model that can be seen without its adapter",
      fix: 'Measure on: "model", or open the model with its adapter.',
    });
  }
  checkEvaluation(evaluation, where);
  checkNeeds(evaluation, target, where);
  const { identity, contextLength, tokenizer } = target;
  const model = [on, identity.name, identity.engine, contextLength, tokenizer?.fingerprint].join("|");
  const known = cache.prepared.get(evaluation)?.find((one) => one.model === model);
  if (known !== undefined) return { ...known, target };
  // Narrowed by `checkNeeds`.
  const all: readonly Row[] = await evaluation.items(target as never);
  checkItems(all, where);
  // Items come in the order in which fewer of them are taken.
  const items = limit === undefined ? all : all.slice(0, limit);
  const made = { model, items, itemsHash: hashJson(toJson(items, where)) };
  cache.prepared.set(evaluation, [...(cache.prepared.get(evaluation) ?? []), made]);
  return { ...made, target };
}

export function whereOf(callback: TrainerCallback, evaluation: AnyEvaluation): string {
  return `callback "${callback.id}", evaluation "${evaluation.name}"`;
}

function checkEvaluation(evaluation: AnyEvaluation, where: string): void {
  const { name, version, samplesPerItem = 1 } = evaluation;
  const refuse = (option: string, got: unknown, expected: string, fix: string) =>
    new PeriodicEvalError({
      code: "config",
      where: `${where} ${option}`,
      got: quoteValue(got),
      expected,
      fix,
    });
  for (const [option, text] of Object.entries({ name, version })) {
    if (typeof text !== "string" || text === "")
      throw refuse(option, text, "a text", "Write it in quotes; snapshots carry it.");
  }
  if (!isCount(samplesPerItem, 1))
    throw refuse(
      "samplesPerItem",
      samplesPerItem,
      "a whole number of 1 or more",
      "Count the rows of one item.",
    );
}

function checkNeeds(evaluation: AnyEvaluation, model: EvaluableModel, where: string): void {
  const abilities = Object.keys(offeredBy) as Ability[];
  for (const need of evaluation.needs as readonly string[]) {
    const ability = abilities.find((name) => name === need);
    if (ability === undefined) {
      const close = nearest(need, abilities);
      throw new PeriodicEvalError({
        code: "config",
        where: `${where} needs`,
        got: `"${need}", which is no ability`,
        expected: `some of ${abilities.join(", ")}`,
        fix: close === null ? "Remove it." : `Did you mean "${close}"?`,
      });
    }
    if (model[ability] !== undefined) continue;
    const has = abilities.filter((name) => model[name] !== undefined).join(", ");
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: `the model "${model.identity.name}" of engine "${model.identity.engine}" with ${has === "" ? "no abilities" : has}`,
      expected: `a model with the ability "${ability}"`,
      fix: `It is offered by ${offeredBy[ability]}.`,
    });
  }
}

function checkItems(items: readonly Row[], where: string): void {
  const refuse = (got: string, expected: string, fix: string) => {
    throw new PeriodicEvalError({ code: "data", where: `${where} items`, got, expected, fix });
  };
  if (!Array.isArray(items)) return refuse(typeof items, "a list of items", "Return an array from items().");
  if (items.length === 0) return refuse("no items", "at least one", "Check the data that items() reads.");
  const seen = new Set<string>();
  for (const [index, item] of items.entries()) {
    const id: unknown = (item as Partial<Row> | null)?.id;
    if (typeof id !== "string" || id === "") {
      return refuse(
        `an item at index ${index} with id ${JSON.stringify(id)}`,
        "a text",
        "Give every item an id: it pairs its rows between two looks.",
      );
    }
    if (seen.has(id))
      return refuse(
        `the id "${id}" twice (again at index ${index})`,
        "unique ids",
        "Remove the repetition, or number the items.",
      );
    seen.add(id);
  }
}

/** Items as their hash sees them: what JSON drops does not count. */
function toJson(items: readonly Row[], where: string): Json {
  try {
    return JSON.parse(JSON.stringify(items)) as Json;
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "data",
      where: `${where} items`,
      got: errorMessage(cause),
      expected: "items that JSON can hold",
      fix: "Keep cyclic values and BigInt out of the items.",
      cause,
    });
  }
}

const missing = new Set(["ENOENT", "ENOTDIR", "EISDIR", "EACCES", "EPERM"]);

/** Looks through the causes: a reader wraps what the file system said. */
export function isMissingFile(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (missing.has(String((cause as { code?: unknown }).code))) return true;
  }
  return false;
}
