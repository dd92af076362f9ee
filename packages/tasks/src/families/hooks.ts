import { configError, functionSchema, errorMessage } from "@periodic-eval/contracts/options";
import {
  type Awaitable,
  type Json,
  type Metric,
  type MetricKit,
  type Row,
  PeriodicEvalError,
} from "@periodic-eval/core";
import type { FamilyParts, FamilyRow } from "./family.ts";

interface Cleaning<D extends Row> {
  /** Returns the part of the model's text that is checked; default all of it. */
  readonly clean?: (text: string, document: D) => string;
}

interface Checking<D extends Row> {
  /** Returns whether the answer is right; null leaves it out of the metrics. */
  readonly check: (document: D, cleaned: string) => Awaitable<boolean | null>;
  readonly score?: undefined;
}

interface Scoring<D extends Row, S extends Json> {
  /** Returns a number, or a value that `metrics` turns into numbers; null leaves it out of the metrics. */
  readonly score: (document: D, cleaned: string) => Awaitable<S | null>;
  readonly check?: undefined;
}

/** Functions that process the text that the model wrote or predicted: `clean`, then `check` or `score`. */
export type Hooks<D extends Row, S extends Json> = Cleaning<D> & (Checking<D> | Scoring<D, S>);

/** The results of the hooks; null without a text. */
export interface Scored<S extends Json> {
  readonly cleaned: string | null;
  readonly score: S | null;
}

const textFunction = functionSchema("a function of a document and a text");

/** Schemas of the hooks. */
export const hooksShape = {
  clean: functionSchema("a function of a text and a document").optional(),
  check: textFunction.optional(),
  score: textFunction.optional(),
  metrics: functionSchema("a function of a metric kit").optional(),
};

/** @throws PeriodicEvalError `config` unless exactly one of `check` and `score` is set. */
export function checkHooks(
  where: string,
  { check, score }: { readonly check?: unknown; readonly score?: unknown },
): void {
  if ((check === undefined) !== (score === undefined)) return;
  throw configError({
    where: `${where} options`,
    path: ["check"],
    got: `${check === undefined ? "neither" : "both"} check and score`,
    expected: "one of them",
    fix: "Set `check` for right or wrong, or `score` for other scores.",
  });
}

export interface Hooked<D extends Row, S extends Json, R extends FamilyRow> {
  /** The function's name, for errors. */
  readonly where: string;
  /** The evaluation's name. */
  readonly task: string;
  readonly hooks: Hooks<D, S>;
  readonly documentOf: FamilyParts<D>["documentOf"];
  /** Returns the text of a row; null if it has none. */
  readonly textOf: (row: R) => string | null;
}

/**
 * Cleans and scores the text of each row, in order.
 *
 * @throws PeriodicEvalError `config` for a hook that throws or returns `undefined`, or a `check` that does not return a boolean.
 */
export async function applyHooks<D extends Row, S extends Json, R extends FamilyRow>(
  rows: readonly R[],
  { where, task, hooks, documentOf, textOf }: Hooked<D, S, R>,
  signal: AbortSignal,
): Promise<readonly (R & Scored<S>)[]> {
  const { clean = (text: string) => text } = hooks;
  const score = hooks.check ?? hooks.score;
  const scoreName = hooks.check === undefined ? "score" : "check";
  const scored: (R & Scored<S>)[] = [];
  for (const row of rows) {
    signal.throwIfAborted();
    const document = await documentOf(row.item);
    const text = textOf(row);
    const location = `task "${task}", document "${row.item}"`;
    const run = <T>(name: string, work: () => Awaitable<T>) =>
      runUserCode({ location, name, code: "config", signal }, work);
    const wrong = (hook: string, value: unknown, expected: string, fix: string) =>
      wrongResult(`${where} options.${hook}`, row.id, value, expected, fix);
    const cleaned = text === null ? null : await run("clean", () => clean(text, document));
    // Without it, a wrong answer would leave the metrics.
    if (text !== null && typeof cleaned !== "string")
      throw wrong("clean", cleaned, "a string", "Return the part of the text that is checked.");
    const value: unknown = cleaned === null ? null : await run(scoreName, () => score(document, cleaned));
    // `undefined`, and words for right and wrong, would count as false.
    if (scoreName === "score" && value === undefined)
      throw wrong(scoreName, value, "a number, or null", "Return the score; null leaves the answer out.");
    if (scoreName === "check" && value !== null && typeof value !== "boolean")
      throw wrong(scoreName, value, "true, false or null", "Return whether the answer is right.");
    scored.push({ ...row, cleaned, score: value as S | null });
  }
  return scored;
}

/** Returns the metric of the hooks: `accuracy` of `check`, or `score`. */
export const hooksMetric =
  (where: string, hooks: { readonly check?: unknown }) =>
  <S extends Json, R extends FamilyRow & Scored<S>>({
    rate,
    mean,
  }: MetricKit<R>): Readonly<Record<string, Metric<R>>> =>
    hooks.check === undefined
      ? { score: mean((row) => numberOf(where, row), { higherIsBetter: true }) }
      : { accuracy: rate((row) => row.score as boolean | null, { higherIsBetter: true }) };

function numberOf(where: string, { id, score }: FamilyRow & Scored<Json>): number | null {
  if (score === null || typeof score === "number") return score;
  if (typeof score === "boolean") return score ? 1 : 0;
  const expected = "a number, true, false or null, because `metrics` is missing";
  const fix = "Set `metrics`, which turns rows into numbers.";
  throw wrongResult(`${where} options.score`, id, score, expected, fix);
}

/** Returns the error for what a hook returned for a row. */
const wrongResult = (hook: string, row: string, value: unknown, expected: string, fix: string) =>
  configError({ where: `${hook} for row "${row}"`, value, expected, fix });

/** A call of a function that the user supplied. */
interface UserCall {
  /** The task and documents. */
  readonly location: string;
  /** The function: `score`, `engine`. */
  readonly name: string;
  readonly code: "config" | "model";
  readonly signal: AbortSignal;
}

/**
 * Runs a custom function.
 *
 * @throws PeriodicEvalError that says which function failed for which documents, with the error as its cause; the signal's reason
 *   after an abort; a PeriodicEvalError of the function unchanged.
 */
export async function runUserCode<T>(
  { location, name, code, signal }: UserCall,
  work: () => Awaitable<T>,
): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    signal.throwIfAborted();
    if (PeriodicEvalError.is(cause)) throw cause;
    throw new PeriodicEvalError({
      code,
      where: `${location}: ${name}`,
      got: `the error ${JSON.stringify(errorMessage(cause))} thrown by your code`,
      expected: "a result",
      fix: "Correct the function: the error's cause has its stack.",
      cause,
    });
  }
}

/** Lists the ids of documents, the first three by name. */
export function idsText(ids: readonly string[]): string {
  const named = ids.slice(0, 3).map((id) => `"${id}"`);
  return [...named, ...(ids.length > 3 ? [`and ${ids.length - 3} more`] : [])].join(", ");
}
