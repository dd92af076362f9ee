import { PeriodicEvalError, type ErrorDetails } from "@periodic-eval/core";

/**
 * Returns the `model` error for a model's files. Names and values in it may come from the files, so long ones are cut.
 */
export function modelError({ where, got, ...rest }: Omit<ErrorDetails, "code">): PeriodicEvalError {
  return new PeriodicEvalError({ code: "model", where: cut(where, 500), got: cut(got, 300), ...rest });
}

/** Returns a value from a file as JSON of at most 120 characters. */
export const quoteShort = (value: unknown): string => cut(JSON.stringify(value) ?? "nothing", 120);

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;
