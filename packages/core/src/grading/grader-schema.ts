import * as z from "zod";
import type { Awaitable, Grader, Json, Snapshot } from "@periodic-eval/contracts";
import { isRecord, parseOptions } from "@periodic-eval/contracts/options";
import { refusalRuleGrader } from "./refusal-rule.ts";

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

/** A grader, or a function that opens it: once, before step 1. The session disposes a grader that it opened when it closes. */
export type GraderSource = Grader | (() => Awaitable<Grader>);

/** An option that is a grader, or a function that opens it. */
export const graderSourceSchema = z
  .custom<GraderSource>((value) => typeof value === "function" || isGrader(value), graderText)
  .meta({ fix: passGrader });

/** Returns the grader of an evaluation, opened once, at its first use; `close` disposes it if this evaluation opened it. */
export function graderOf(source: GraderSource, option: string) {
  let opened: Grader | null = typeof source === "function" ? null : source;
  const open = async (): Promise<Grader> => {
    if (opened !== null) return opened;
    const grader = await (source as () => Awaitable<Grader>)();
    parseOptions(`the result of the function \`${option}\``, graderSchema, grader);
    return (opened = grader);
  };
  return {
    open,
    /** The grader, once it is opened. */
    opened: () => opened!,
    async close(): Promise<void> {
      if (typeof source === "function") await opened?.dispose?.();
    },
    /** Whether the grader may have a check. */
    mayCheck: typeof source === "function" || source.check !== undefined,
  };
}

/** Returns what identifies a grader, for the provenance. */
export function graderFacts(grader: Grader): Json {
  const { name, fingerprint } = grader;
  const description = grader.describe?.();
  return { name, fingerprint, ...(description !== undefined && { description }) };
}

/** The judge that a snapshot names. */
export interface StoredJudge {
  readonly name: string;
  readonly fingerprint: string;
  readonly description?: unknown;
}

/** Returns the judge that a snapshot of alignment or refusal names; null for another one, and for the rule that grades refusal. */
export function storedJudge({ evaluation, provenance }: Snapshot): StoredJudge | null {
  const options = isRecord(provenance.evaluation) ? provenance.evaluation : {};
  const facts =
    evaluation === "alignment" ? options["judge"] : evaluation === "refusal" ? options["grader"] : null;
  const isJudge = isRecord(facts) && facts["fingerprint"] !== refusalRuleGrader.fingerprint;
  return isJudge ? (facts as unknown as StoredJudge) : null;
}
