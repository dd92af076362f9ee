import { PeriodicEvalError, type ErrorCode } from "../errors.ts";

const errorOf =
  (code: ErrorCode) =>
  (where: string, got: string, expected: string, fix: string, cause?: unknown): PeriodicEvalError =>
    new PeriodicEvalError({ code, where, got, expected, fix, cause });

/** Returns the `data` error for a wrong row, file or folder at `where`. */
export const dataError = errorOf("data");

/** Returns the `model` error for a wrong model, engine or reply of a server at `where`. */
export const modelError = errorOf("model");

/** Returns the `store` error for a wrong file of a run or of results at `where`. */
export const fileError = errorOf("store");
