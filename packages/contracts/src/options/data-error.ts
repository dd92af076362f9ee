import { PeriodicEvalError, type ErrorCode } from "../errors.ts";

const errorWith =
  (code: ErrorCode) =>
  (where: string, got: string, expected: string, fix: string, cause?: unknown): PeriodicEvalError =>
    new PeriodicEvalError({ code, where, got, expected, fix, cause });

/** Returns the `data` error for a wrong row, file or folder at `where`. */
export const dataError = errorWith("data");
/** Returns the `model` error for a model that cannot be used or gives wrong numbers. */
export const modelError = errorWith("model");
/** Returns the `judge` error for a judge that cannot be used. */
export const judgeError = errorWith("judge");
