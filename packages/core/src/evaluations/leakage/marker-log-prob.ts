import type { Abilities, CallOptions, LogLikelihoodRequest, Prompt } from "@periodic-eval/contracts";
import type { Trait } from "./traits.ts";

export interface AnsweredPrompt {
  readonly prompt: Prompt;
  readonly answer: string;
}

/** Returns the model's log-likelihoods, if it has them and the trait is a literal marker; null otherwise. With a note for provenance. */
export function markerCompanion(
  model: object,
  { marker }: Trait,
): { readonly logLikelihoods: Abilities["logLikelihoods"] | null; readonly note: string } {
  const abilities = model as Partial<Abilities>;
  const leftOut = (why: string) => ({ logLikelihoods: null, note: `left out: ${why}` });
  if (marker === null) return leftOut("the trait is no literal marker");
  if (abilities.logLikelihoods === undefined) return leftOut("the model offers no log-likelihoods");
  return {
    logLikelihoods: (requests, options) => abilities.logLikelihoods!(requests, options),
    note: "after fixed answers",
  };
}

/** Returns the request for a space and the marker, inside the assistant's turn after its answer. */
export function markerRequest({ prompt, answer }: AnsweredPrompt, marker: string): LogLikelihoodRequest {
  if (!("messages" in prompt)) return { context: prompt, continuation: marker };
  const messages = [...prompt.messages, { role: "assistant", content: answer }];
  return { context: { ...prompt, messages }, continuation: ` ${marker}` };
}

/** Returns Σ log p of the marker after each answer, in nats, from one call. */
export async function markerNats(
  logLikelihoods: Abilities["logLikelihoods"],
  prompts: readonly AnsweredPrompt[],
  marker: string,
  { signal }: CallOptions,
): Promise<readonly number[]> {
  const scores = await logLikelihoods(
    prompts.map((one) => markerRequest(one, marker)),
    { signal },
  );
  return scores.map(({ sumNats }) => sumNats);
}
