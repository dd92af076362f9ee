import type { Abilities, CallOptions, LogLikelihoodRequest, Prompt } from "@periodic-eval/contracts";
import type { Trait } from "./traits.ts";

export interface AnsweredPrompt {
  readonly prompt: Prompt;
  readonly answer: string;
}

/** Whether the marker's log-probability can be measured. */
export interface MarkerCompanion {
  /** The abilities that the evaluation wants; empty if the companion is omitted for every model. */
  readonly wants: readonly "logLikelihoods"[];
  /** Returns the ability of this model, or null, and the note for provenance. */
  of(model: object): { readonly logLikelihoods: Abilities["logLikelihoods"] | null; readonly note: string };
}

export function markerCompanion(isWanted: boolean, trait: Trait): MarkerCompanion {
  if (!isWanted || trait.marker === null) {
    const why = isWanted ? "the trait is no literal marker" : "companion is false";
    return { wants: [], of: () => ({ logLikelihoods: null, note: `left out: ${why}` }) };
  }
  return {
    wants: ["logLikelihoods"],
    of(model) {
      const abilities = model as Partial<Abilities>;
      if (abilities.logLikelihoods === undefined)
        return { logLikelihoods: null, note: "left out: the model offers no log-likelihoods" };
      return {
        logLikelihoods: (requests, options) => abilities.logLikelihoods!(requests, options),
        note: "after fixed answers",
      };
    },
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
