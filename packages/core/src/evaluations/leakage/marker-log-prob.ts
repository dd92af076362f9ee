import type { Abilities, CallOptions, LogLikelihoodRequest, Prompt } from "../../contracts/model.ts";
import type { Trait } from "./traits.ts";

/** A question that an answer of ours was given to. */
export interface Answered {
  readonly prompt: Prompt;
  readonly answer: string;
}

/** Whether a model can be asked for the marker's log p, and what provenance tells of it. */
export interface MarkerCompanion {
  readonly wants: readonly "logLikelihoods"[];
  of(model: object): { readonly logLikelihoods: Abilities["logLikelihoods"] | null; readonly told: string };
}

export function markerCompanion(isWanted: boolean, trait: Trait): MarkerCompanion {
  if (!isWanted || trait.marker === null) {
    const why = isWanted ? "the trait is no literal marker" : "companion is false";
    return { wants: [], of: () => ({ logLikelihoods: null, told: `left out: ${why}` }) };
  }
  return {
    wants: ["logLikelihoods"],
    of(model) {
      const able = model as Partial<Abilities>;
      if (able.logLikelihoods === undefined)
        return { logLikelihoods: null, told: "left out: the model offers no log-likelihoods" };
      return {
        logLikelihoods: (requests, options) => able.logLikelihoods!(requests, options),
        told: "after fixed answers",
      };
    },
  };
}

/** What the model is asked: a space and the marker, inside the assistant's turn after its answer. */
export function markerRequest({ prompt, answer }: Answered, marker: string): LogLikelihoodRequest {
  if (!("messages" in prompt)) return { context: prompt, continuation: marker };
  const messages = [...prompt.messages, { role: "assistant", content: answer }];
  return { context: { ...prompt, messages }, continuation: ` ${marker}` };
}

/** Σ log p of the marker after each answer, in nats, in one call. */
export async function markerNats(
  logLikelihoods: Abilities["logLikelihoods"],
  asked: readonly Answered[],
  marker: string,
  { signal }: CallOptions,
): Promise<readonly number[]> {
  const scores = await logLikelihoods(
    asked.map((one) => markerRequest(one, marker)),
    { signal },
  );
  return scores.map(({ sumNats }) => sumNats);
}
