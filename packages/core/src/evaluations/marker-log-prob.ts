import type { MeasureContext } from "../evaluation/types.ts";
import type { Abilities, LogLikelihood, LogLikelihoodRequest, Prompt } from "../model/types.ts";
import type { Trait } from "./traits.ts";

/** A question that an answer of ours was given to. */
export interface Answered {
  readonly prompt: Prompt;
  readonly answer: string;
}

/** Why the marker's log p is not looked at; null where it is. */
export function whyNoMarker({
  companion,
  trait,
  logLikelihoods,
}: {
  readonly companion: boolean;
  readonly trait: Trait;
  readonly logLikelihoods: Abilities["logLikelihoods"] | undefined;
}): string | null {
  if (!companion) return "left out: companion is false";
  if (trait.marker === null) return "left out: the trait is no literal marker";
  if (logLikelihoods === undefined) return "left out: the model offers no log-likelihoods";
  return null;
}

/** What the model is asked: a space and the marker, inside the assistant's turn after its answer. */
export function markerRequest({ prompt, answer }: Answered, marker: string): LogLikelihoodRequest {
  if (!("messages" in prompt)) return { context: prompt, continuation: marker };
  const messages = [...prompt.messages, { role: "assistant", content: answer }];
  return { context: { ...prompt, messages }, continuation: ` ${marker}` };
}

/** Σ log p of the marker after each answer, in nats; null throughout where an abort came. */
export async function markerNats(
  logLikelihoods: Abilities["logLikelihoods"],
  asked: readonly Answered[],
  marker: string,
  { signal }: MeasureContext,
): Promise<readonly number[] | null> {
  if (signal.aborted) return null;
  let scores: readonly LogLikelihood[];
  try {
    scores = await logLikelihoods(
      asked.map((one) => markerRequest(one, marker)),
      { signal },
    );
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  }
  return scores.map(({ sumNats }) => sumNats);
}
