import type { Metric, MetricKit, Row } from "@periodic-eval/core";
import { checkOf, type IFEvalDocument } from "./ifeval-document.ts";
import { strip } from "./text/pattern.ts";

/** Whether each instruction of a document is followed, in the document's order. */
export type IFEvalScores = {
  /** Checks the response itself. */
  readonly strict: readonly boolean[];
  /** Accepts the response or one of its loose forms (`looseForms`), so it is true wherever `strict` is. */
  readonly loose: readonly boolean[];
};

/**
 * Checks a response against each instruction of its document, as the task `ifeval` (version 4) of lm-evaluation-harness 0.4.13
 * does. A blank response follows none. benchmarks/results/ifeval.md lists the deviations and their frequency.
 *
 * @throws PeriodicEvalError `data` for a document that `readDocument` would reject.
 */
export function scoreResponse(document: IFEvalDocument, response: string): IFEvalScores {
  const checks = document.instructions.map((instruction, at) =>
    checkOf(instruction, `IFEval document ${document.key}, kwargs[${at}]`),
  );
  const [whole, ...forms] = looseForms(response).map((form) => (strip(form) === "" ? null : form));
  const follows = (check: (form: string) => boolean, form: string | null) => form !== null && check(form);
  const strict = checks.map((check) => follows(check, whole!));
  const loose = checks.map((check, at) => strict[at]! || forms.some((form) => follows(check, form)));
  return { strict, loose };
}

/**
 * Returns the response and its looser variants: without its first line, its last line or both (a model's "Sure, here it is:"),
 * and each of these without asterisks. All are different.
 */
export function looseForms(response: string): readonly string[] {
  const lines = response.split("\n");
  const shortened = [lines.slice(1), lines.slice(0, -1), lines.slice(1, -1)].map((some) =>
    strip(some.join("\n")),
  );
  const forms = [response, ...shortened];
  return [...new Set([...forms, ...forms.map((form) => form.replaceAll("*", ""))])];
}

/** A row with scores; null if its prompt was skipped. Such rows count in no metric. */
interface Scored extends Row {
  readonly score: IFEvalScores | null;
}

/**
 * Returns the four metrics of IFEval with their names in lm-evaluation-harness: the share of prompts whose instructions are all
 * followed, and the share of all instructions that are followed. They read rows of a `rolloutEvaluation` whose `score` is
 * `scoreResponse`.
 */
export function ifevalMetrics<R extends Scored>({ rate, ratio }: MetricKit<R>): Record<string, Metric<R>> {
  const prompts = (reading: keyof IFEvalScores) =>
    rate(({ score }) => score && score[reading].every(Boolean), { higherIsBetter: true });
  const instructions = (reading: keyof IFEvalScores) =>
    ratio(({ score }) => score && [score[reading].filter(Boolean).length, score[reading].length], {
      higherIsBetter: true,
      unit: "share",
      range: [0, 1],
    });
  return {
    prompt_level_strict_acc: prompts("strict"),
    inst_level_strict_acc: instructions("strict"),
    prompt_level_loose_acc: prompts("loose"),
    inst_level_loose_acc: instructions("loose"),
  };
}
