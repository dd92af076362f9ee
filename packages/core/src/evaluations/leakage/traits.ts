import * as z from "zod";
import type { Abilities, CallOptions, LogLikelihoodRequest, Prompt, Json } from "@periodic-eval/contracts";
import {
  configError,
  errorMessage,
  isRecord,
  parseOptions,
  filledString,
  functionSchema,
} from "@periodic-eval/contracts/options";
import { limitedTime } from "@periodic-eval/store";

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
    prompts.map((prompt) => markerRequest(prompt, marker)),
    { signal },
  );
  return scores.map(({ sumNats }) => sumNats);
}

/**
 * The trait to detect in a completion.
 * - a string: a literal marker, not a pattern.
 * - `{ regex, flags? }`: a JavaScript pattern that matches anywhere.
 * - `{ name, version?, hit }`: a function of the completion. Its author changes `version` (default `1`) with its behaviour.
 */
export type TraitOptions =
  | string
  | { readonly regex: string; readonly flags?: string }
  | { readonly name: string; readonly version?: string; readonly hit: (text: string) => boolean };

/** A deterministic yes or no about one completion, without a model. */
export interface Trait {
  readonly name: string;
  /** Identifies the rule in provenance. It changes when a result may change. */
  readonly fingerprint: Json;
  /** The literal marker; null for every other trait. */
  readonly marker: string | null;
  /** Whether an answer that was cut off without a hit could still have got one: true for markers and patterns. */
  readonly needsEnd: boolean;
  hit(text: string): boolean;
}

const regexShape = {
  regex: filledString("a pattern in quotes").meta({ fix: "Write it without slashes." }),
  flags: z
    .string("some of i, m, s, u, v")
    .regex(/^[imsuv]*$/, "some of i, m, s, u, v")
    .meta({ fix: "Remove g and y: a match anywhere is a hit." })
    .optional(),
};
const hitShape = {
  name: filledString("a non-empty string").meta({ fix: "Name the trait." }),
  version: z.string().optional(),
  hit: functionSchema("a function of a string").meta({
    fix: "Return true if the completion has the trait.",
  }),
};

/** Returns the trait that the option `marker` of the options `where` describes. */
export function traitOf(marker: TraitOptions, where: string): Trait {
  if (typeof marker === "string" && marker !== "")
    return trait("marker", { marker }, (text) => text.includes(marker), { marker, needsEnd: true });
  const check = (form: z.ZodType) => parseOptions(where, z.strictObject({ marker: form }), { marker });
  if (isRecord(marker)) check(z.strictObject({ ...regexShape, ...hitShape }).partial());
  if (!isRecord(marker) || "regex" in marker === "hit" in marker)
    throw configError({
      where,
      path: ["marker"],
      value: marker,
      expected: "a non-empty string, or one of { regex }, { name, hit }",
      fix: "Choose one trait; use two callbacks for two traits.",
    });
  check(z.strictObject("regex" in marker ? regexShape : hitShape));
  if ("regex" in marker) return regexTrait(marker, where);
  const { name, version = "1", hit } = marker;
  return trait(name, { name, version }, hit);
}

const trait = (
  name: string,
  fingerprint: Json,
  hit: Trait["hit"],
  { marker = null, needsEnd = false }: Partial<Pick<Trait, "marker" | "needsEnd">> = {},
): Trait => ({ name, fingerprint, marker, needsEnd, hit });

function regexTrait(
  { regex, flags = "" }: { readonly regex: string; readonly flags?: string },
  where: string,
): Trait {
  let pattern: RegExp;
  try {
    pattern = new RegExp(regex, flags);
  } catch (cause) {
    throw configError({
      where,
      path: ["marker", "regex"],
      value: regex,
      expected: `a JavaScript pattern (${errorMessage(cause)})`,
      fix: "Correct the pattern, or use a string for a literal marker.",
      cause,
    });
  }
  const limited = limitedTime("the pattern of the trait");
  return trait("regex", { regex, flags }, (text) => limited(() => pattern.test(text)), {
    needsEnd: true,
  });
}
