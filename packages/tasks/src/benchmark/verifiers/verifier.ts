import type { Awaitable, Json, PeriodicEvalError } from "@periodic-eval/core";
import {
  abbreviated,
  dataError,
  didYouMean,
  isFilledList,
  quoteValue,
} from "@periodic-eval/contracts/options";
import type { VerifierArgs } from "@periodic-eval/core/grading";

/** Returns why a completion does not pass; null if it passes. */
export type Check = (completion: string) => Awaitable<string | null>;

/** A built-in verifier, opened for one task and used for each of its completions. */
export interface VerifierKind {
  /** Must change when the same completion would be graded differently. */
  readonly version: string;
  readonly args: readonly string[];
  /** @throws PeriodicEvalError `data` whose `where` is the key; the caller adds file and line. */
  readonly open: (task: { readonly answer: Json; readonly args: VerifierArgs }) => Awaitable<Check>;
}

/**
 * Returns the error for a wrong value in a task.
 *
 * @param key The key in the task: `answer`, `args.rel_tol`.
 */
export function verifierError(key: string, value: unknown, expected: string, fix: string): PeriodicEvalError {
  return dataError(key, short(value), expected, fix);
}

/** @throws PeriodicEvalError `data` for an unknown argument. */
export function checkArgs(args: VerifierArgs, known: readonly string[]): void {
  for (const key of Object.keys(args)) {
    if (known.includes(key)) continue;
    const expected = known.length === 0 ? "no arguments" : `some of ${known.join(", ")}`;
    throw verifierError(`args.${key}`, args[key], expected, didYouMean(key, known) ?? "Remove it.");
  }
}

export function flagOf(args: VerifierArgs, key: string): boolean {
  const { [key]: given = false } = args;
  if (typeof given === "boolean") return given;
  throw verifierError(`args.${key}`, given, "true or false", "Write it without quotes.");
}

export function textsOf(answer: Json): readonly string[] {
  const texts = typeof answer === "string" ? [answer] : answer;
  if (isFilledList(texts)) return texts;
  const fix =
    typeof answer === "number" ? "Put it in quotes, or use the verifier numeric." : "Write the right answer.";
  throw verifierError("answer", answer, "a non-empty string, or an array of them", fix);
}

export function patternOf(key: string, pattern: Json, flags: Json = ""): RegExp {
  const fix = "Write a JavaScript pattern without slashes; double each backslash in JSON.";
  if (typeof pattern !== "string" || pattern === "") throw verifierError(key, pattern, "a pattern", fix);
  if (typeof flags !== "string" || !/^[imsuv]*$/.test(flags))
    throw verifierError("args.flags", flags, "some of i, m, s, u, v", "Remove other flags, such as g and y.");
  try {
    return new RegExp(pattern, flags);
  } catch (cause) {
    throw dataError(key, short(pattern), "a JavaScript pattern", fix, cause);
  }
}

/**
 * Returns a function that extracts the checked part of a completion: all of it, or the last match of the argument `extract` (its
 * first group, if it has one). It returns null if there is no match.
 */
export function extractor(args: VerifierArgs): (completion: string) => string | null {
  const { extract } = args;
  if (extract === undefined) return (completion) => completion;
  const { source } = patternOf("args.extract", extract);
  const pattern = new RegExp(source, "g");
  return (completion) => {
    const last = [...completion.matchAll(pattern)].at(-1);
    return last === undefined ? null : (last[1] ?? last[0]);
  };
}

export const nothingExtracted = "nothing that `extract` finds";

/** Quotes a value in at most 80 characters. */
export const short = (value: unknown): string => abbreviated(quoteValue(value), 80);
