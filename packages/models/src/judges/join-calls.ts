import type { CallOptions, EvaluableModel } from "@periodic-eval/core";
import { wrapModel, type Ask } from "@periodic-eval/core/model";

/** A call that waits for the next batch. */
interface Waiting<Q, A> {
  readonly requests: readonly Q[];
  readonly options: CallOptions;
  resolve(answers: readonly A[]): void;
  reject(error: unknown): void;
}

/**
 * Returns the same model, which answers concurrent calls of one kind in one batch: a judge asks one answer per call. Batches run
 * one after the other. A batch that fails is repeated call by call, so that each call has its own error.
 */
export const joinCalls = (model: EvaluableModel): EvaluableModel => wrapModel(model, joined);

function joined<Q, A>(ask: Ask<Q, A>): Ask<Q, A> {
  let waiting: Waiting<Q, A>[] = [];
  let running: Promise<void> = Promise.resolve();
  const run = async () => {
    // Concurrent calls arrive within one turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve, 0));
    const batch = waiting.filter(({ options }) => !options.signal.aborted);
    for (const { options, reject } of waiting) if (options.signal.aborted) reject(options.signal.reason);
    waiting = [];
    if (batch.length > 0) await answer(ask, batch);
  };
  return (requests, options) =>
    new Promise((resolve, reject) => {
      waiting.push({ requests, options, resolve, reject });
      running = running.then(run);
    });
}

async function answer<Q, A>(ask: Ask<Q, A>, batch: readonly Waiting<Q, A>[]): Promise<void> {
  const [first] = batch;
  const { signal, close } = whenAllAborted(batch.map(({ options }) => options.signal));
  const options = batch.length === 1 ? first!.options : { ...first!.options, signal };
  try {
    const answers = await ask(
      batch.flatMap(({ requests }) => requests),
      options,
    );
    let from = 0;
    for (const { requests, resolve } of batch) resolve(answers.slice(from, (from += requests.length)));
  } catch (error) {
    if (batch.length === 1) return first!.reject(error);
    for (const one of batch) await answer(ask, [one]);
  } finally {
    close();
  }
}

/** Returns a signal that aborts once all signals have. */
function whenAllAborted(signals: readonly AbortSignal[]) {
  const all = new AbortController();
  const check = () => {
    if (signals.every(({ aborted }) => aborted)) all.abort(signals[0]!.reason);
  };
  for (const signal of signals) signal.addEventListener("abort", check);
  check();
  return {
    signal: all.signal,
    close: () => signals.forEach((signal) => signal.removeEventListener("abort", check)),
  };
}
