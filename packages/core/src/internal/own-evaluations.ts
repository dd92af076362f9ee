const own = new WeakSet<object>();

/** Marks an evaluation of this package that runs no code of the user, and so leaves no promise behind. */
export function ownEvaluation<T extends object>(evaluation: T): T {
  own.add(evaluation);
  return evaluation;
}

export const isOwnEvaluation = (evaluation: object): boolean => own.has(evaluation);
