import { PeriodicEvalError } from "@periodic-eval/core";

const unscored = new WeakSet<PeriodicEvalError>();

/** Returns the error for a reply to `/v1/score` without usable numbers. A metric catches it with `valueOrReason`. */
export function unscoredError(url: string, got: string): PeriodicEvalError {
  const error = new PeriodicEvalError({
    code: "model",
    where: `${url}/v1/score`,
    got,
    expected: "a log-probability for each token of the text (logprobs)",
    fix: "Use a service that returns scores, or leave logprob and collapse out of metrics.",
  });
  unscored.add(error);
  return error;
}

/** Returns what `read` returns; null and the reason if the service's scores have no numbers. All other errors pass through. */
export async function valueOrReason<T>(
  read: () => Promise<T>,
): Promise<
  { readonly value: T; readonly reason?: undefined } | { readonly value: null; readonly reason: string }
> {
  try {
    return { value: await read() };
  } catch (error) {
    if (!PeriodicEvalError.is(error) || !unscored.has(error)) throw error;
    return { value: null, reason: `${error.where}: ${error.got}` };
  }
}
