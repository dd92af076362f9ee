// Schemas that the options of several functions share. Their messages are noun phrases that continue "expected".
import * as z from "zod";
import type { ValuePath } from "../errors.ts";
import type { Sampling } from "../model.ts";
import { namePattern } from "../snapshot.ts";
import { configError } from "./config-error.ts";
import { isFilled, isFilledList, isRecord } from "./values.ts";

/** Names in a run's folder besides those of phases. File systems may ignore case, so any case of them is taken. */
const reservedPhases = ["superseded", "index.jsonl"];

export const nameRule = `a name that matches ${namePattern.source}`;
const phaseRule = `${nameRule} other than ${reservedPhases.join(", ")}`;
const nameFix =
  "Use letters, digits, dots, dashes and underscores, and begin with a letter or a digit: the name becomes a file name.";

const isName = (value: unknown): value is string => typeof value === "string" && namePattern.test(value);
const isReserved = (value: unknown): boolean =>
  typeof value === "string" && reservedPhases.includes(value.toLowerCase());

const isPhaseName = (value: unknown): value is string => isName(value) && !isReserved(value);

/**
 * Checks a name that becomes a file name: `../other` would leave the run's folder.
 *
 * @param path The place of the name within the options `where`.
 * @throws PeriodicEvalError `config`.
 */
export function checkName(where: string, value: unknown, path: ValuePath = []): void {
  if (!isName(value)) throw configError({ where, path, value, expected: nameRule, fix: nameFix });
}

/**
 * Checks the name of a phase, which becomes a folder.
 *
 * @param path The place of the name within the options `where`.
 * @throws PeriodicEvalError `config`, also for names that the store uses itself (`superseded`).
 */
export function checkPhaseName(where: string, value: unknown, path: ValuePath = []): void {
  const fix = isReserved(value) ? "Rename the phase." : nameFix;
  if (!isPhaseName(value)) throw configError({ where, path, value, expected: phaseRule, fix });
}

export const positiveInteger = z.int("a positive integer").positive("a positive integer");

export const integerFromZero = z.int("an integer of 0 or more").nonnegative("an integer of 0 or more");

export const numberFromZero = (expected = "a finite number of 0 or more") =>
  z.number(expected).nonnegative(expected);

export const numberToOne = (expected: string) => z.number(expected).gt(0, expected).max(1, expected);

export const filledString = (expected: string) => z.string(expected).min(1, expected);

/** A string that is not blank. */
export const filledText = (expected = "a non-empty string") => z.custom<string>(isFilled, expected);

/** One or more strings that are not blank. */
export const filledTexts = (expected = "one or more non-empty strings") =>
  z.custom<readonly string[]>(isFilledList, expected);

export const nameSchema = z.string(nameRule).regex(namePattern, nameRule).meta({ fix: nameFix });

export const phaseSchema = z.custom<string>(isPhaseName, phaseRule).meta({ fix: nameFix });

export const seedSchema = z.string("a string").meta({ fix: "Put the seed in quotes." });

export const stepsSchema = z.int("a non-negative integer").nonnegative("a non-negative integer");

export const signalSchema = z.custom<AbortSignal>(
  (value) => isRecord(value) && typeof value["aborted"] === "boolean",
  "an AbortSignal",
);

/** `"base"` is the model without its adapter. */
export const onSchema = z.enum(["model", "base"]);

/** Any function: TypeScript checks its signature. */
export const functionSchema = <T>(expected = "a function") =>
  z.custom<T>((value) => typeof value === "function", expected);

/** Any object with these methods, which passes through by reference. */
export const objectWith = <T>(methods: readonly (keyof T & string)[], expected: string) =>
  z.custom<T>(
    (value) => isRecord(value) && methods.every((method) => typeof value[method] === "function"),
    expected,
  );

/** An array of things that are checked elsewhere, or the path of a file of them. */
export const arrayOrPath = <T>(expected: string) =>
  z.custom<readonly T[] | string>(
    (value) => Array.isArray(value) || (typeof value === "string" && value !== ""),
    expected,
  );

/** The settings of a sampled completion. */
export const samplingSchema = z.strictObject({
  maxNewTokens: positiveInteger,
  temperature: numberFromZero("a number of 0 (greedy) or more"),
  topP: numberToOne("a number in (0, 1]").optional(),
  topK: positiveInteger.meta({ fix: "Omit topK to sample from all tokens." }).optional(),
  stop: z.array(z.string().min(1)).optional(),
  topTokens: integerFromZero.optional(),
  seed: z.string(),
} satisfies Record<keyof Sampling, z.ZodType>);
