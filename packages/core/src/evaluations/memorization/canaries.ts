import * as z from "zod";
import type { Prompt } from "@periodic-eval/contracts";
import {
  configError,
  integerFromZero,
  parseOptions,
  positiveInteger,
} from "@periodic-eval/contracts/options";
import { namedStream } from "../../random/streams.ts";

const slot = "{secret}";

/** Secrets that nothing but training can teach, in a format of the training rows. */
export interface CanaryOptions {
  /** The text of a canary, with `{secret}` for its random digits: `The code of the archive is {secret}.` */
  readonly format: string;
  /** The user's turn before it, in a chat whose assistant says `format`. Default: plain text. */
  readonly prompt?: string;
  /** Default 4. */
  readonly canaries?: number;
  /** Digits of a secret. Default 6. */
  readonly digits?: number;
  /** Default 42. */
  readonly seed?: number;
}

export const canaryShape = {
  format: z
    .string("a text with {secret}")
    .refine((text) => text.split(slot).length === 2, "a text with {secret} once")
    .meta({ fix: 'Write for example "The code of the archive is {secret}."' }),
  prompt: z.string().min(1).optional(),
  canaries: positiveInteger.optional(),
  digits: positiveInteger.max(15, "at most 15 digits").optional(),
  seed: integerFromZero.optional(),
} satisfies Record<keyof CanaryOptions, z.ZodType>;

/** Returns the options with the defaults of those that are missing. */
export const withDefaults = ({ canaries = 4, digits = 6, seed = 42, ...rest }: CanaryOptions) => ({
  canaries,
  digits,
  seed,
  ...rest,
});

/** A secret, and `count - 1` others that were drawn like it and are in no training row. */
export interface Canary {
  readonly id: string;
  readonly secret: string;
  readonly others: readonly string[];
}

/**
 * Returns the canaries. All secrets differ, and none is among the others of a canary. A secret depends only on the seed and its
 * number.
 */
export function drawCanaries(options: CanaryOptions, count: number): Canary[] {
  const { canaries, digits, seed } = withDefaults(options);
  const draws = Array.from({ length: canaries }, (_, at) => {
    const random = namedStream(JSON.stringify(["canary", seed, at]));
    return () => Array.from({ length: digits }, () => Math.floor(10 * random())).join("");
  });
  const secrets = new Set<string>();
  for (const [at, draw] of draws.entries()) while (secrets.size <= at) secrets.add(draw());
  return [...secrets].map((secret, at) => {
    const drawn = new Set(secrets);
    while (drawn.size < canaries + count - 1) drawn.add(draws[at]!());
    return { id: String(at), secret, others: [...drawn].slice(canaries) };
  });
}

/** @throws PeriodicEvalError `config` if there are fewer strings of `digits` than canaries and the others of one. */
export function checkDigits(where: string, options: CanaryOptions, count: number): void {
  const { canaries, digits } = withDefaults(options);
  const needed = canaries + count - 1;
  if (needed <= 10 ** digits) return;
  throw configError({
    where,
    path: ["digits"],
    value: digits,
    expected: `${String(needed - 1).length} or more, for ${needed} different secrets`,
    fix: "Raise `digits`, or lower the number of canaries or candidates.",
  });
}

/**
 * Returns the context of a secret, and its continuation. The space before a secret belongs to the continuation, as tokens join it
 * with what follows.
 */
export function aroundSecret({ format, prompt }: CanaryOptions) {
  const [start, after] = format.split(slot) as [string, string];
  const before = start.trimEnd();
  const continuationOf = (secret: string) => `${start.slice(before.length)}${secret}${after}`;
  const user = { role: "user", content: prompt ?? "" };
  const messages = before === "" ? [user] : [user, { role: "assistant", content: before }];
  const context: Prompt = prompt === undefined ? { text: before } : { messages };
  return { context, continuationOf };
}

/** A row that `withCanaries` adds: a chat, or plain text. */
export type CanaryRow =
  | { readonly text: string }
  | { readonly messages: readonly { readonly role: string; readonly content: string }[] };

/**
 * Mixes canaries into training rows: `repeats` copies of each, at random places. `memorizationEvaluation` with the same options
 * measures whether training memorizes them.
 *
 * @param rows The training rows, in the form of the canaries: chats with `prompt`, else texts.
 * @param repeats Copies of each canary. Default 4.
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function withCanaries<R>(
  rows: readonly R[],
  { repeats = 4, ...options }: CanaryOptions & { readonly repeats?: number },
): (R | CanaryRow)[] {
  const shape = { ...canaryShape, repeats: positiveInteger };
  parseOptions("withCanaries options", z.strictObject(shape), { ...options, repeats });
  checkDigits("withCanaries options", options, 1);
  const { format, prompt, seed } = withDefaults(options);
  const random = namedStream(JSON.stringify(["canary places", seed]));
  const mixed: (R | CanaryRow)[] = [...rows];
  for (const { secret } of drawCanaries(options, 1))
    for (let copy = 0; copy < repeats; copy++) {
      const text = format.replace(slot, () => secret);
      const row: CanaryRow =
        prompt === undefined
          ? { text }
          : {
              messages: [
                { role: "user", content: prompt },
                { role: "assistant", content: text },
              ],
            };
      mixed.splice(Math.floor(random() * (mixed.length + 1)), 0, row);
    }
  return mixed;
}
