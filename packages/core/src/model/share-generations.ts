import { hashJson } from "../random/hash.ts";
import type { Json } from "../contracts/json.ts";
import type { CallOptions, EvaluableModel } from "../contracts/model.ts";

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
 */
export function shareGenerations(model: EvaluableModel): SharedModel {
  const kept: Map<string, unknown>[] = [];
  return {
    model: sharing(model, kept),
    forget: () => kept.forEach((answers) => answers.clear()),
  };
}

function sharing(model: EvaluableModel, kept: Map<string, unknown>[]): EvaluableModel {
  const { contextLength, tokenizer, base } = model;
  const once = <Q, A>(
    ask: (requests: readonly Q[], options: CallOptions) => Promise<readonly A[]>,
    isKept: (request: Q) => boolean = () => true,
  ) => {
    const answers = new Map<string, A>();
    kept.push(answers);
    return (requests: readonly Q[], options: CallOptions) =>
      answer(requests, options, { ask, isKept, answers });
  };
  return {
    get identity() {
      return model.identity;
    },
    contextLength,
    ...(tokenizer && { tokenizer }),
    ...(model.logLikelihoods && {
      logLikelihoods: once((requests, options) => model.logLikelihoods!(requests, options)),
    }),
    ...(model.nextToken && {
      nextToken: once(
        (requests, options) => model.nextToken!(requests, options),
        ({ candidates }) => candidates.length <= maximumCandidates,
      ),
    }),
    ...(model.generate && {
      generate: once(
        (requests, options) => model.generate!(requests, options),
        ({ sampling }) => sampling.topTokens === undefined,
      ),
    }),
    ...(model.textEntropies && {
      textEntropies: once((texts, options) => model.textEntropies!(texts, options)),
    }),
    ...(base && { base: sharing(base, kept) }),
    ...(model.check && { check: (options: CallOptions) => model.check!(options) }),
  };
}

interface Asking<Q, A> {
  readonly ask: (requests: readonly Q[], options: CallOptions) => Promise<readonly A[]>;
  readonly isKept: (request: Q) => boolean;
  readonly answers: Map<string, A>;
}

async function answer<Q, A>(
  requests: readonly Q[],
  options: CallOptions,
  { ask, isKept, answers }: Asking<Q, A>,
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
    if (key !== null) answers.set(key, value);
    return value;
  });
}
