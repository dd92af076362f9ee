import { existsSync } from "node:fs";
import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import type { ValuePath } from "@periodic-eval/core";
import { readConfigFile } from "@periodic-eval/core/config";
import { z } from "zod";

/** What collapse is looked for on. */
export interface CollapseProbes {
  /** Fixed text over which the model's uncertainty is read. */
  readonly text: string;
  /** Prompts that have many answers: on those that have one a healthy model repeats itself too. */
  readonly prompts: readonly string[];
}

/** Fewer prompts than this say little. */
export const leastProbes = 8;

/** In plain English, for models that follow instructions. */
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

const text = z.string("expected a text").min(1, "expected a text");
const fields = {
  text,
  prompts: z
    .array(text, "expected a list of prompts")
    .min(leastProbes, `expected ${leastProbes} prompts or more`),
};

/**
 * Probes of a YAML file `{ text, prompts }`.
 *
 * @param key for errors: that which names the file.
 * @throws PeriodicEvalError `config` with file and line for a file of another form.
 */
export async function readCollapseProbes(path: string, key = "collapse_probes"): Promise<CollapseProbes> {
  if (!existsSync(path))
    throw new PeriodicEvalError({
      code: "config",
      where: key,
      got: `"${path}", which is not there`,
      expected: "a YAML file { text, prompts }",
      fix: "Check the path.",
    });
  const { value, where } = await readConfigFile(path);
  checkKeys(where([]), value as object, Object.keys(fields));
  const parsed = z.object(fields).safeParse(value);
  if (parsed.success) return parsed.data;
  const { path: at, message } = parsed.error.issues[0]!;
  throw new PeriodicEvalError({
    code: "config",
    where: where(at as ValuePath),
    got: "something else",
    expected: message.replace(/^expected /, ""),
    fix: "Correct the file.",
  });
}
