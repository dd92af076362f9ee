import type { MeasurementWarning } from "@periodic-eval/contracts";

export interface CutPromptOptions {
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
