import * as z from "zod";
import type { Prompt } from "@periodic-eval/contracts";
import { isRecord, filledString, integerFromZero } from "@periodic-eval/contracts/options";

export interface MarginOptions {
  /** A JSON or YAML file `{ variant: { affirm: [string], negate: [string] } }`, or rows as `readStatements` takes them. */
  readonly probes: string;
  /**
   * The context of every statement. Default `{ text: "" }`: the token that starts a text (begin-of-text, else end-of-text),
   * which is not scored. The statement follows a text directly, so end the text with a space. After a chat, the statement is the
   * assistant's reply, or continues its last message.
   */
  readonly before?: Prompt;
  /** Seed of the order in which a smaller budget uses the statements. Default 42. */
  readonly seed?: number;
}

const isPrompt = (value: unknown): boolean =>
  isRecord(value) && ["text", "ids", "messages"].some((kind) => Object.hasOwn(value, kind));

export const marginShape = {
  probes: filledString("the path of a JSON or YAML file").meta({ fix: "Name the file of statements." }),
  before: z
    .custom<Prompt>(isPrompt, "{ text }, { ids } or { messages }")
    .meta({ fix: 'Remove `before` for { text: "" }.' })
    .optional(),
  seed: integerFromZero.optional(),
} satisfies Record<keyof MarginOptions, z.ZodType>;
