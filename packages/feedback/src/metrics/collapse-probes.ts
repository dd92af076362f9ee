import { filledString } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { readNamedFile } from "../config/file-errors.ts";

/** The text and the prompts on which collapse is measured. */
export interface CollapseProbes {
  /** Fixed text over which the model's entropy is measured. */
  readonly text: string;
  /** Prompts with many possible answers. For other prompts, a healthy model also repeats itself. */
  readonly prompts: readonly string[];
}

/** Minimum number of prompts. */
export const minProbes = 8;

/** Default probes in plain English, for instruction-tuned models. */
export const collapseProbes: CollapseProbes = {
  text:
    "The harbour was quiet when the ferry came in. A boy sold newspapers by the gate, and two women argued over the price " +
    "of plums. Nobody noticed the dog until it barked. By noon the fog had lifted, the cafés were full, and someone had " +
    "begun to play the accordion.",
  prompts: [
    "Tell me a short story about a lighthouse.",
    "What would you do with a free afternoon?",
    "Describe a room that you like.",
    "Write two sentences about the winter.",
    "Give me an idea for a present.",
    "What makes a good friend?",
    "Invent a new holiday and describe it.",
    "Write the beginning of a letter to a sailor.",
  ],
};

const text = filledString("a non-empty string");
const schema = z.strictObject(
  {
    text,
    prompts: z.array(text, "an array of prompts").min(minProbes, `at least ${minProbes} prompts`),
  } satisfies Record<keyof CollapseProbes, z.ZodType>,
  "an object with text and prompts",
);

/**
 * Reads probes from a YAML file `{ text, prompts }`.
 *
 * @param where The configuration key of the path, for errors.
 * @throws PeriodicEvalError `config` for a missing file, or with file and line for wrong content.
 */
export async function readCollapseProbes(path: string, where = "collapse_probes"): Promise<CollapseProbes> {
  return readNamedFile(path, schema, { where, expected: "a YAML file { text, prompts }" });
}
