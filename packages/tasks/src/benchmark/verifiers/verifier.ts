import type { Awaitable, Json } from "@periodic-eval/core";
import {
  abbreviated,
  configError,
  filledText,
  filledTexts,
  parseOptions,
  quoteValue,
  unknownOption,
} from "@periodic-eval/contracts/options";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import * as z from "zod";

/** Returns why a completion does not pass; null if it passes. */
export type Check = (completion: string) => Awaitable<string | null>;

/** A built-in verifier, opened for one task and used for each of its completions. */
export interface VerifierKind {
  /** Must change when the same completion would be graded differently. */
  readonly version: string;
  /** @throws PeriodicEvalError whose `where` is the key of the task; the caller adds file and line. */
  readonly open: (task: { readonly answer: Json; readonly args: VerifierArgs }) => Promise<Check>;
}

/** Returns a verifier whose answer and arguments are checked against schemas. */
export const verifierKind = <S extends z.ZodType, A extends z.ZodRawShape>(
  version: string,
  schemas: { readonly answer: S; readonly args: A },
  open: (answer: z.output<S>, args: z.output<z.ZodObject<A>>) => Awaitable<Check>,
): VerifierKind => ({
  version,
  async open({ answer, args }) {
    const known = Object.keys(schemas.args);
    const key = Object.keys(args).find((name) => !known.includes(name));
    if (key !== undefined)
      throw configError({
        where: "args",
        path: [key],
        ...unknownOption(key, known),
        got: `the unknown argument "${key}"`,
      });
    const read = parseOptions("args", z.strictObject(schemas.args), args);
    return open(parseOptions("answer", schemas.answer, answer), read);
  },
});

export const flag = z.boolean("true or false").default(false);

/** One or more right answers. */
export const textsSchema = z
  .union([filledText().transform((text) => [text]), filledTexts()], "a non-empty string, or an array of them")
  .meta({ fix: "Put it in quotes, or use the verifier numeric." });

export const patternFix = "Write a JavaScript pattern without slashes; double each backslash in JSON.";

/** The source of a pattern. Its flags decide whether it compiles. */
export const patternSchema = z
  .string("a JavaScript pattern")
  .min(1, "a JavaScript pattern")
  .meta({ fix: patternFix });

/** Returns a pattern as a regular expression; null if it is none. */
export function regExpOf(source: string, flags?: string): RegExp | null {
  try {
    return new RegExp(source, flags);
  } catch {
    return null;
  }
}

/**
 * The argument `extract`: a function that extracts the checked part of a completion, which is the last match (its first group, if it
 * has one), or without the argument all of it. It returns null if there is no match.
 */
export const extract = patternSchema
  .refine((source) => regExpOf(source) !== null, "a JavaScript pattern")
  .meta({ fix: patternFix })
  .optional()
  .transform((source) => (completion: string): string | null => {
    if (source === undefined) return completion;
    const last = [...completion.matchAll(new RegExp(source, "g"))].at(-1);
    return last === undefined ? null : (last[1] ?? last[0]);
  });

export const nothingExtracted = "nothing that `extract` finds";

/** Quotes a value in at most 80 characters. */
export const short = (value: unknown): string => abbreviated(quoteValue(value), 80);
