import { quoteValue } from "../internal/quote-value.ts";
import { PeriodicEvalError } from "../errors.ts";
import type { AnyEvaluation } from "../contracts/evaluation.ts";
import type { Awaitable } from "../contracts/json.ts";
import { nearest } from "../internal/nearest.ts";
import type { Trigger } from "../contracts/schedule.ts";
import type { PhaseEvalConfig } from "./config-schema.ts";
import { PeriodicCallback } from "../callback/periodic-callback.ts";

/**
 * Makes an evaluation of an entry of `evaluations`, without the keys that all kinds have (`id`, `every_percent`, `schedule`).
 *
 * @param where the entry's place, for errors: `periodic_eval.evaluations.0`; that of a key follows a dot.
 */
export type EvaluationMaker = (
  options: Readonly<Record<string, unknown>>,
  where: string,
) => Awaitable<AnyEvaluation>;

/** Kinds of evaluations, by the key that an entry names its evaluation with: `task` of `{ task: gsm8k, limit: 50 }`. */
export type EvaluationRegistry = Readonly<Record<string, EvaluationMaker>>;

type Entry = PhaseEvalConfig["evaluations"][number];

interface Configuring {
  /** Of the entries: `periodic_eval.evaluations`. */
  readonly place: string;
  readonly kinds: EvaluationRegistry;
  readonly scheduleOf: (entry: Entry) => readonly Trigger[];
  /** Ids of the other callbacks. */
  readonly taken: readonly string[];
}

/**
 * The callbacks of the entries of `evaluations`.
 *
 * @throws PeriodicEvalError `config` for an entry of no kind or of two, an id that another has, and what its kind throws.
 */
export async function configuredCallbacks(
  entries: readonly Entry[],
  { place, kinds, scheduleOf, taken }: Configuring,
): Promise<readonly PeriodicCallback[]> {
  const callbacks: PeriodicCallback[] = [];
  for (const [at, entry] of entries.entries()) {
    const where = `${place}.${at}`;
    const { id, every_percent: _percent, schedule: _schedule, ...options } = entry;
    const make = kinds[kindOf(options, kinds, where)]!;
    const evaluation = await placed(where, () => make(options, where));
    const schedule = scheduleOf(entry);
    const callback = await placed(
      where,
      () => new PeriodicCallback(evaluation, { schedule, ...(id !== undefined && { id }) }),
    );
    if ([...taken, ...callbacks.map((one) => one.id)].includes(callback.id))
      throw wrong(
        where,
        `${quoteValue(callback.id)}, as another evaluation is named`,
        "names that differ",
        "Give one an id: snapshots are filed by it.",
      );
    callbacks.push(callback);
  }
  return callbacks;
}

function kindOf(
  options: Readonly<Record<string, unknown>>,
  kinds: EvaluationRegistry,
  where: string,
): string {
  const known = Object.keys(kinds);
  const given = Object.keys(options);
  if (known.length === 0)
    throw wrong(
      where,
      "an evaluation, and nothing that makes it",
      "the option evaluations",
      "Pass `evaluationsOf(tasks)` of @periodic-eval/tasks, or makers of your own by name.",
    );
  const named = given.filter((key) => known.includes(key));
  if (named.length === 1) return named[0]!;
  const guess = given.map((key) => nearest(key, known)).find((one) => one !== null);
  throw wrong(
    where,
    given.length === 0 ? "no kind" : named.length > 1 ? named.join(" and ") : given.join(", "),
    `one of ${known.join(", ")}`,
    named.length > 1
      ? "Make an entry of each."
      : guess === undefined
        ? `Say what is measured, as ${known[0]}: name.`
        : `Did you mean "${guess}"?`,
  );
}

/** Kinds name their own options in errors; where in the block they stand is known here. */
async function placed<T>(where: string, make: () => Awaitable<T>): Promise<T> {
  try {
    return await make();
  } catch (cause) {
    if (!PeriodicEvalError.is(cause) || cause.where.startsWith(where)) throw cause;
    const { code, got, expected, fix } = cause;
    throw new PeriodicEvalError({ code, where: `${where}, ${cause.where}`, got, expected, fix, cause });
  }
}

const wrong = (where: string, got: string, expected: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where, got, expected, fix });
