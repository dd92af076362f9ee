import * as z from "zod";
import type { Awaitable, Grader, Json } from "@periodic-eval/contracts";
import { isRecord, parseOptions } from "@periodic-eval/contracts/options";

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

/** A grader, or a function that opens it. */
export type GraderSource = Grader | (() => Awaitable<Grader>);

/** An option that is a grader, or a function that opens it. */
export const graderSourceSchema = z
  .custom<GraderSource>((value) => typeof value === "function" || isGrader(value), graderText)
  .meta({ fix: passGrader });

/** Returns the grader of an evaluation, opened once, at its first use; `close` disposes it if this evaluation opened it. */
export function graderOf(given: GraderSource, option: string) {
  let opened: Grader | null = typeof given === "function" ? null : given;
  const open = async (): Promise<Grader> => {
    if (opened !== null) return opened;
    const grader = await (given as () => Awaitable<Grader>)();
    parseOptions(`the result of the function \`${option}\``, graderSchema, grader);
    return (opened = grader);
  };
  return {
    open,
    /** The grader, once it is opened. */
    opened: () => opened!,
    async close(): Promise<void> {
      if (typeof given === "function") await opened?.dispose?.();
    },
    /** Whether the grader may have a check. */
    mayCheck: typeof given === "function" || given.check !== undefined,
  };
}

/** Returns what identifies a grader, for the provenance. */
export function graderFacts(grader: Grader): Json {
  const { name, fingerprint } = grader;
  const description = grader.describe?.();
  return { name, fingerprint, ...(description !== undefined && { description }) };
}
