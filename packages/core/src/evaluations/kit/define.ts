import type { Ability, Evaluation, Row } from "@periodic-eval/contracts";

/**
 * Returns the evaluation unchanged. The call lets TypeScript infer the item, row and graded types and narrow the model to the
 * abilities in `needs`.
 */
export function defineEvaluation<I extends Row, R extends Row, const A extends Ability, G extends R = R>(
  evaluation: Evaluation<I, R, G, A>,
): Evaluation<I, R, G, A> {
  return evaluation;
}
