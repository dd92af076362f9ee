import * as z from "zod";
import type { Grader, Json } from "@periodic-eval/contracts";
import { isRecord } from "@periodic-eval/contracts/options";

export const isGrader = (value: unknown): value is Grader =>
  isRecord(value) &&
  typeof value["grade"] === "function" &&
  typeof value["name"] === "string" &&
  typeof value["fingerprint"] === "string";

/** A grader, in the words of an error, and what to do. */
export const graderText = "a grader, with the strings `name` and `fingerprint` and the function `grade`";
export const passGrader = "Pass a judge, or a rule: `ruleGrader({ name, rule })`.";

/** An option that is a grader. */
export const graderSchema = z.custom<Grader>(isGrader, graderText).meta({ fix: passGrader });

/** Returns what identifies a grader, for the provenance. */
export function graderFacts(grader: Grader): Json {
  const { name, fingerprint } = grader;
  const description = grader.describe?.();
  return { name, fingerprint, ...(description !== undefined && { description }) };
}
