import * as z from "zod";
import type { Message, SystemPrompt } from "@periodic-eval/contracts";
import { atOption, codeOption } from "@periodic-eval/contracts/options";
import { parseData, placesIn, readSource, textFormats } from "@periodic-eval/data";
import { everyItem, nestedSubset } from "../kit/subset.ts";

/** The turns of a training row, as an example before a question. */
export interface TrainingExample {
  readonly system: SystemPrompt;
  /** Ends with the assistant's turn. */
  readonly messages: readonly Message[];
}

const message = z.looseObject({ role: z.enum(["system", "user", "assistant"]), content: z.string() });
const turns = z.array(message, "an array of messages { role, content }").min(1, "one message or more");
const rowSchema = z.union([
  z.looseObject({ messages: turns }),
  z.looseObject({ prompt: turns, completion: turns }).transform(({ prompt, completion }) => ({
    messages: [...prompt, ...completion],
  })),
]);

/**
 * Reads training rows as examples, in a seeded order. A hub source without a split is `train`.
 *
 * @throws PeriodicEvalError `data` for a row of another form, or whose last turn is not the assistant's.
 */
export async function readTrainingExamples(source: string) {
  const option = codeOption("alignment", "trainingRows");
  return atOption(option, async () => {
    const { rows, sha256, hub } = await readSource(source, option, textFormats, ["train"]);
    const examples = rows.map(({ row, place }): TrainingExample => {
      const { messages } = parseData(placesIn(place), exampleSchema, row);
      const [first] = messages;
      const hasSystem = first!.role === "system";
      return {
        system: hasSystem ? { text: first!.content } : "omit",
        messages: messages.slice(hasSystem ? 1 : 0).map(({ role, content }) => ({ role, content })),
      };
    });
    return { examples: nestedSubset(examples, everyItem), provenance: { ...hub, file_sha256: sha256 } };
  });
}

const exampleSchema = rowSchema.refine(
  ({ messages }) => messages.at(-1)?.role === "assistant" && messages.some(({ role }) => role === "user"),
  "a chat with a user's turn whose last turn is the assistant's",
);
