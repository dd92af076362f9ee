import type { Ability } from "../../contracts/model.ts";
import type { Evaluation, Row } from "../../contracts/evaluation.ts";

/**
 * Defines an evaluation. The identity function: it exists so that TypeScript infers the item, row and graded types
 * and narrows the model to the abilities in `needs`.
 */
export function defineEvaluation<I extends Row, R extends Row, const A extends Ability, G extends R = R>(
  evaluation: Evaluation<I, R, G, A>,
): Evaluation<I, R, G, A> {
  return evaluation;
}
