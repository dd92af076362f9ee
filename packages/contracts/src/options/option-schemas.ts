// Schemas that the options of several functions share. Their messages are noun phrases that continue "expected".
import * as z from "zod";
import { namePattern } from "../snapshot.ts";
import { isRecord } from "./is-record.ts";
import { isPhaseName, nameFix, nameRule, phaseRule } from "./names.ts";

export const positiveInteger = z.int("a positive integer").positive("a positive integer");

export const integerFromZero = z.int("an integer of 0 or more").nonnegative("an integer of 0 or more");

export const numberFromZero = (expected = "a finite number of 0 or more") =>
  z.number(expected).nonnegative(expected);

export const numberToOne = (expected: string) => z.number(expected).gt(0, expected).max(1, expected);

export const filledString = (expected: string) => z.string(expected).min(1, expected);

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
