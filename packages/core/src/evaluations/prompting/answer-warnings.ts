import type { MeasurementWarning } from "@periodic-eval/contracts";
import type { CompletionRow } from "./completions.ts";

/** Why an answer does not show how the model behaves. `cut`: what decides could still have come. */
export type AnswerFault = "empty" | "repeated" | "incoherent" | "ungraded" | "cut";

export interface AnswerWarningOptions<R extends CompletionRow> {
  /** The metrics that the answers decide. */
  readonly metrics: readonly string[];
  /** The evaluation's name. */
  readonly evaluation: string;
  readonly faultOf: (row: R) => AnswerFault | null;
}

const words: Readonly<Record<AnswerFault, string>> = {
  empty: "empty",
  repeated: "repetitions",
  incoherent: "incoherent",
  ungraded: "not graded",
  cut: "cut off too early to decide",
};

/**
 * Returns the warnings of sampled answers: metrics cannot be judged if more than half of the answers have a fault; answers that
 * their limit cut off are a warning, if more than half are.
 */
export function answerWarnings<R extends CompletionRow>(
  rows: readonly R[],
  { metrics, evaluation, faultOf }: AnswerWarningOptions<R>,
): readonly MeasurementWarning[] {
  const total = rows.length;
  const faults = rows.map(faultOf).filter((fault) => fault !== null);
  if (2 * faults.length > total) {
    const counts = (Object.keys(words) as AnswerFault[])
      .map((fault) => ({ fault, count: faults.filter((other) => other === fault).length }))
      .filter(({ count }) => count > 0)
      .toSorted((a, b) => b.count - a.count);
    const { fault } = counts[0]!;
    const parts = counts.map((entry) => `${entry.count} ${words[entry.fault]}`).join(", ");
    const what = counts.length === 1 ? words[fault] : `of no use (${parts})`;
    const message = `${faults.length} of ${total} answers are ${what}: ${evaluation} cannot be judged.`;
    const kind = fault === "cut" ? "truncated" : fault;
    return [{ kind, metrics: [...metrics], count: faults.length, total, void: true, message }];
  }
  const count = rows.filter(({ finish }) => finish === "length").length;
  if (2 * count <= total) return [];
  const message = `${count} of ${total} answers were cut off by their limit: only their beginnings are measured.`;
  return [{ kind: "truncated", metrics: [...metrics], count, total, void: false, message }];
}

interface CutPromptOptions {
  /** The metrics of these rows; null for all. */
  readonly metrics: readonly string[] | null;
  /** Whether a cut removes a part of the question, and not only examples before it. */
  readonly losesQuestion: boolean;
}

/**
 * Returns the warning for prompts that were cut on the left to fit the model's context. If more than half of the questions lost a
 * part, the metrics cannot be judged.
 */
export function cutPromptWarnings(
  rows: readonly { readonly truncatedTokens: number | null }[],
  { metrics, losesQuestion }: CutPromptOptions,
): readonly MeasurementWarning[] {
  const [total, count] = [
    rows.length,
    rows.filter(({ truncatedTokens }) => (truncatedTokens ?? 0) > 0).length,
  ];
  if (count === 0) return [];
  const isVoid = losesQuestion && 2 * count > total;
  const lost = losesQuestion ? "the beginning of their question" : "examples before their question";
  const message = `${count} of ${total} prompts lost ${lost} to fit the model's context`;
  return [
    {
      kind: "cut_prompts",
      metrics: metrics && [...metrics],
      count,
      total,
      void: isVoid,
      message: isVoid ? `${message}: the answers cannot be judged.` : `${message}.`,
    },
  ];
}
