import { z } from "zod";
import type { Guard } from "../../contracts/guard.ts";
import { namePattern } from "../../contracts/snapshot.ts";
import { isRecord } from "../../internal/is-record.ts";
import { reservedPhases } from "../../internal/names.ts";

// Schemas of options that a session and `measure` share.

const nameFix = "Use letters, digits, dots, dashes and underscores, beginning with a letter or a digit.";

/** The id of a snapshot, which becomes a file name. */
export const idSchema = z
  .custom<string>(
    (value) => typeof value === "string" && namePattern.test(value),
    `a name that matches ${namePattern.source}`,
  )
  .meta({ fix: nameFix });

/** The name of a phase, which becomes a folder name. */
export const phaseSchema = z
  .custom<string>(
    (value) =>
      typeof value === "string" && namePattern.test(value) && !reservedPhases.includes(value.toLowerCase()),
    `a name that matches ${namePattern.source} other than ${reservedPhases.join(", ")}`,
  )
  .meta({ fix: nameFix });

export const seedSchema = z.string("a string").meta({ fix: "Put the seed in quotes." });

export const onSchema = z.enum(["model", "base"]);

export const stepsSchema = z.int("a non-negative integer").nonnegative("a non-negative integer");

export const guardSchema = z.custom<Guard>(
  (value) => isRecord(value) && typeof value["enter"] === "function",
  "a guard",
);

export const signalSchema = z.custom<AbortSignal>(
  (value) => isRecord(value) && typeof value["aborted"] === "boolean",
  "an AbortSignal",
);

/** A schema for any function; `expected` says what the function does. */
export const functionSchema = <T>(expected: string) =>
  z.custom<T>((value) => typeof value === "function", expected);
