import { PeriodicEvalError } from "@periodic-eval/core";

/** What is wrong with a model's files. Names and values come from the files: what is told of them is cut short. */
export function failure(
  where: string,
  got: string,
  expected: string,
  fix: string,
  cause?: unknown,
): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where: cut(where, 500),
    got: cut(got, 300),
    expected,
    fix,
    cause,
  });
}

/** A value of a file, as an error shows it. */
export const shown = (value: unknown): string => cut(JSON.stringify(value) ?? "nothing", 120);

const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;
