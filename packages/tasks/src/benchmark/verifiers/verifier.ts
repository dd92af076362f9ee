import { PeriodicEvalError, type Awaitable, type Json } from "@periodic-eval/core";
import { nearest, quoteValue } from "@periodic-eval/core/internal";
import type { VerifierArgs } from "@periodic-eval/core/grading";

/** Why a completion does not pass; null where it does. */
export type Check = (completion: string) => Awaitable<string | null>;

/** A verifier that is built in: opened for one task, asked about each of its completions. */
export interface VerifierKind {
  /** Changes when the same completion would be judged otherwise. */
  readonly version: string;
  readonly args: readonly string[];
  /** @throws PeriodicEvalError `data` whose place is the key: the caller knows file and line. */
  readonly open: (task: { readonly answer: Json; readonly args: VerifierArgs }) => Awaitable<Check>;
}

/** @param key of the task: `answer`, `args.rel_tol`. */
export function refuse(key: string, got: unknown, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "data", where: key, got: short(got), expected, fix });
}

/** @throws PeriodicEvalError `data` for an argument that the verifier does not have. */
export function checkArgs(args: VerifierArgs, known: readonly string[]): void {
  for (const key of Object.keys(args)) {
    if (known.includes(key)) continue;
    const close = nearest(key, known);
    const fix = close === null ? "Remove it." : `Did you mean "${close}"?`;
    const expected = known.length === 0 ? "no arguments" : `some of ${known.join(", ")}`;
    throw refuse(`args.${key}`, args[key], expected, fix);
  }
}

export function flagOf(args: VerifierArgs, key: string): boolean {
  const { [key]: given = false } = args;
  if (typeof given === "boolean") return given;
  throw refuse(`args.${key}`, given, "true or false", "Write it without quotes.");
}

/** A text, or a list of texts. */
export function textsOf(answer: Json): readonly string[] {
  const texts = typeof answer === "string" ? [answer] : answer;
  if (Array.isArray(texts) && texts.length > 0 && texts.every(isFilled)) return texts;
  const fix =
    typeof answer === "number" ? "Put it in quotes, or take the verifier numeric." : "Write what is right.";
  throw refuse("answer", answer, "a text that is not empty, or a list of such", fix);
}

const isFilled = (value: Json): value is string => typeof value === "string" && value.trim() !== "";

export function patternOf(key: string, pattern: Json, flags: Json = ""): RegExp {
  const fix = "Write a pattern of JavaScript, without slashes; in JSON a backslash is written twice.";
  if (typeof pattern !== "string" || pattern === "") throw refuse(key, pattern, "a pattern", fix);
  if (typeof flags !== "string" || !/^[imsuv]*$/.test(flags))
    throw refuse("args.flags", flags, "some of i, m, s, u, v", "A match anywhere counts: g and y go.");
  try {
    return new RegExp(pattern, flags);
  } catch (cause) {
    const expected = "a pattern of JavaScript";
    throw new PeriodicEvalError({ code: "data", where: key, got: short(pattern), expected, fix, cause });
  }
}

/**
 * The part of a completion that is looked at: all of it, or what the argument `extract` finds, its first group where it
 * has one, the last match of several. Null where it finds nothing.
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

/** As a reason quotes it. */
export function short(value: unknown): string {
  const text = quoteValue(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
