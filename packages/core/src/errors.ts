/** What kind of thing went wrong; stable across versions, for `switch`. */
export type ErrorCode = "config" | "data" | "model" | "judge" | "store" | "receipt" | "deadline" | "aborted";

export interface ErrorDetails {
  readonly code: ErrorCode;
  /** The place: a file and line, an option's path, a function. */
  readonly where: string;
  readonly got: string;
  readonly expected: string;
  /** One imperative sentence: what the reader should do now. */
  readonly fix: string;
  readonly cause?: unknown;
}

const brand = Symbol.for("periodic-eval.error");

/** The one error class of the project. Its message reads `[periodic-eval] <where>: got X, expected Y. <fix>`. */
export class PeriodicEvalError extends Error {
  readonly [brand] = true;
  readonly code: ErrorCode;
  readonly where: string;
  readonly got: string;
  readonly expected: string;
  readonly fix: string;

  constructor({ code, where, got, expected, fix, cause }: ErrorDetails) {
    super(
      `[periodic-eval] ${where}: got ${got}, expected ${expected}. ${fix}`,
      cause === undefined ? undefined : { cause },
    );
    this.name = "PeriodicEvalError";
    this.code = code;
    this.where = where;
    this.got = got;
    this.expected = expected;
    this.fix = fix;
  }

  /** True for an error of this class, also one from a second installed copy of the package. */
  static is(error: unknown, code?: ErrorCode): error is PeriodicEvalError {
    return (
      error instanceof Error &&
      brand in error &&
      (code === undefined || (error as PeriodicEvalError).code === code)
    );
  }
}
