import {
  hashJson,
  type Json,
  type CallOptions,
  type EvaluableModel,
  type GenerateRequest,
  type NextTokenRequest,
} from "@periodic-eval/contracts";
import { type Ask, wrapModel } from "./wrap-model.ts";

/** A view of a model that caches answers. */
export interface SharedModel {
  readonly model: EvaluableModel;
  /** Clears the cache: when the weights may have changed, and to free memory. */
  forget(): void;
}

/** Hashing a whole vocabulary takes longer than the answer of many a model. */
const maximumCandidates = 256;

/**
 * Returns the same model with a cache of its answers, for the measurements of one step on frozen weights. Two requests are equal
 * if their prompt and sampling are (including the seed's name), or their prompt and candidates, or their context and
 * continuation. The base has a separate cache. Large answers are not cached: the most likely tokens (`topTokens`), and
 * next-token log-probabilities of more than 256 candidates.
 *
 * @param maximumAnswers Answers to cache per ability, the first ones, so that memory does not grow with the questions. Beyond,
 *   evaluations ask again for what they share.
 */
export function shareGenerations(model: EvaluableModel, maximumAnswers = 2 ** 16): SharedModel {
  const caches: Map<string, unknown>[] = [];
  const once = <Q, A>(ask: Ask<Q, A>): Ask<Q, A> => {
    const answers = new Map<string, A>();
    const keep = (key: string, value: A) => {
      if (answers.size < maximumAnswers) answers.set(key, value);
    };
    caches.push(answers);
    return (requests, options) => answer(ask, { answers, keep }, requests, options);
  };
  return {
    model: wrapModel(model, once),
    forget: () => caches.forEach((answers) => answers.clear()),
  };
}

function isKept(request: unknown): boolean {
  const { candidates, sampling } = request as Partial<NextTokenRequest & GenerateRequest>;
  return (candidates?.length ?? 0) <= maximumCandidates && sampling?.topTokens === undefined;
}

async function answer<Q, A>(
  ask: Ask<Q, A>,
  { answers, keep }: { readonly answers: ReadonlyMap<string, A>; keep(key: string, value: A): void },
  requests: readonly Q[],
  options: CallOptions,
): Promise<readonly A[]> {
  // The model would throw too.
  options.signal.throwIfAborted();
  const keys = requests.map((request) => (isKept(request) ? hashJson(request as Json) : null));
  const isNew = keys.map((key) => key === null || !answers.has(key));
  if (!isNew.includes(true)) return keys.map((key) => answers.get(key!)!);
  const fresh = await ask(
    requests.filter((_, at) => isNew[at]),
    options,
  );
  const next = fresh.values();
  return keys.map((key, at) => {
    if (!isNew[at]) return answers.get(key!)!;
    const { value } = next.next() as { value: A };
    if (key !== null) keep(key, value);
    return value;
  });
}
