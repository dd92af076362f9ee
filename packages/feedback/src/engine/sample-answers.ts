import type { ServiceModel } from "./service-model.ts";
import type { FeedbackAnswer, SampleRequest } from "./types.ts";

/** Data that `sample` keeps for `update`: token ids and their log p; null if the server does not return them. */
export interface Trace {
  readonly ids: readonly number[] | null;
  readonly nats: readonly number[] | null;
}

/** Samples answers at temperature 1, with the data that an update needs. */
export async function sampleAnswers(
  model: ServiceModel,
  requests: readonly SampleRequest[],
  signal: AbortSignal,
): Promise<readonly FeedbackAnswer[]> {
  const drawn = await model.generate(
    requests.map(({ prompt, maxNewTokens, seed }) => ({
      prompt: { messages: [{ role: "user", content: prompt }] },
      sampling: { maxNewTokens, temperature: 1, seed },
    })),
    { signal },
  );
  return drawn.map(({ text, finish, ids, tokenNats }): FeedbackAnswer => {
    const nats = ids !== null && tokenNats?.length === ids.length ? tokenNats : null;
    return { text, finish, trace: { ids: ids && [...ids], nats: nats && [...nats] } };
  });
}
