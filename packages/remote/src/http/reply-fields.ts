import { PeriodicEvalError, type Completion, type ValuePath } from "@periodic-eval/core";
import { abbreviated, isCount, quoteValue, valueAt } from "@periodic-eval/contracts/options";

/** Returns the value at a path within a value of unknown shape; undefined if the path does not exist. */
export const at = (value: unknown, ...path: ValuePath): unknown => valueAt(value, path);

export const isString = (value: unknown): value is string => typeof value === "string";

/** Returns an array unchanged; null for any other value. */
export const arrayOrNull = (value: unknown): readonly unknown[] | null =>
  Array.isArray(value) ? value : null;

/**
 * Returns `{ usage }` from the field `usage` of a server's reply: null for a count that is missing or invalid; an empty object without
 * either.
 */
export function usageOf(reply: unknown, inputKey: string, outputKey: string): Pick<Completion, "usage"> {
  const countOrNull = (value: unknown) => (isCount(value) ? value : null);
  const usage = {
    inputTokens: countOrNull(at(reply, "usage", inputKey)),
    outputTokens: countOrNull(at(reply, "usage", outputKey)),
  };
  return usage.inputTokens === null && usage.outputTokens === null ? {} : { usage };
}

/** Returns the tokens of a completion's prompt and text; null if the server does not report both. */
export const totalTokens = ({ usage }: Pick<Completion, "usage">): number | null =>
  usage === undefined || usage.inputTokens === null || usage.outputTokens === null
    ? null
    : usage.inputTokens + usage.outputTokens;

/**
 * Returns the error that a reply reports: its field `error`, or without the field `content` its message (`{ object: "error",
 * message }`, `{ detail }`, `{ errors }`). Undefined or null for none.
 */
export const errorIn = (reply: unknown, content: string): unknown =>
  at(reply, "error") ??
  ((at(reply, content) ?? null) === null
    ? (at(reply, "message") ?? at(reply, "detail") ?? at(reply, "errors", 0))
    : null);

/**
 * Requires that a reply reports no error. Gateways send errors of other servers with status 200, sometimes with a truncated completion.
 *
 * @param reported The error, which may be missing or null; see `errorIn`.
 * @throws PeriodicEvalError `model` with the message of the server.
 */
export function checkNoError(where: string, reported: unknown): void {
  if (reported === undefined || reported === null) return;
  const message = at(reported, "message") ?? reported;
  throw new PeriodicEvalError({
    code: "model",
    where,
    got: `an error with status 200: ${abbreviated(isString(message) ? message : quoteValue(message))}`,
    expected: "a completion",
    fix: "Check the server's message, then try again.",
  });
}
