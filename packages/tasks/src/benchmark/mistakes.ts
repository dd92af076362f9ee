import { PeriodicEvalError, type ErrorDetails } from "@periodic-eval/core";

/** Collects the mistakes in a folder, to report them together. */
export interface Mistakes {
  add(mistake: Omit<ErrorDetails, "code">): void;
  /** Adds a PeriodicEvalError with another place; throws any other error. */
  keep(error: unknown, place: string): void;
  /** @throws PeriodicEvalError `data` for one mistake, an AggregateError for several. */
  throwAny(): void;
}

/** The most mistakes in a message; the AggregateError's `errors` has all. */
const mostListed = 20;

export function mistakes(): Mistakes {
  const found: PeriodicEvalError[] = [];
  const add: Mistakes["add"] = (mistake) =>
    void found.push(new PeriodicEvalError({ ...mistake, code: "data" }));
  return {
    add,
    keep(error, place) {
      if (!PeriodicEvalError.is(error)) throw error;
      const { where, got, expected, fix, cause } = error;
      add({ where: where === "" ? place : `${place} ${where}`, got, expected, fix, cause });
    },
    throwAny() {
      if (found.length === 1) throw found[0]!;
      if (found.length === 0) return;
      const listed = found.slice(0, mostListed).map(({ message }) => message);
      const rest = found.length - listed.length;
      throw new AggregateError(found, [...listed, ...(rest > 0 ? [`and ${rest} more`] : [])].join("\n"));
    },
  };
}
