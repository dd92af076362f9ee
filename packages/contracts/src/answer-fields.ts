import * as z from "zod";
import type { Json } from "./json.ts";

const path = z.string().min(1);

const conditionSchema = z.strictObject({
  is: z
    .array(z.json() as z.ZodType<Json>)
    .optional()
    .describe("The values that it may have; null for a missing one."),
  below: z.number().optional().describe("It is a number below this one."),
  at_most: z.number().optional().describe("It is a number of at most this one."),
  above: z.number().optional().describe("It is a number above this one."),
  at_least: z.number().optional().describe("It is a number of at least this one."),
});

export const answerFlagSchema = z.strictObject({
  name: z
    .string()
    .min(1)
    .describe("The word for such an answer. `anchor` is a fixed text, which is not an answer of the model."),
  any: z
    .array(z.record(path, conditionSchema))
    .describe("Conditions by field. All conditions of one of the objects hold."),
});

export const answerFieldsSchema = z.strictObject({
  question: path
    .optional()
    .describe("What was asked: a string, or a chat, of which the last message counts."),
  answer: path.optional().describe("The text that the model wrote."),
  prompt: path.optional().describe("The whole prompt, with the system prompt and the chat template."),
  persona: path.optional().describe("The persona that answered."),
  reply: path.optional().describe("The grader’s reply, or why it failed."),
  grades: z
    .array(path)
    .optional()
    .describe(
      "The grades. Answers are sorted by the first, the lowest first; a boolean one is also a filter.",
    ),
  flags: z
    .array(answerFlagSchema)
    .optional()
    .describe("Words for answers that readers look for. Answers with the first come first."),
  tokens: z.record(z.string(), path).optional().describe("Numbers of tokens, by what they are."),
  choices: z
    .strictObject({
      labels: path.optional().describe("One label per choice; without it, letters name the choices."),
      texts: path.optional().describe("One string per choice."),
      nats: path.describe("log p of each choice."),
      gold: path.describe("The right label, or a list of the right indices."),
      predicted: path.describe("The model’s label or index."),
    })
    .optional()
    .describe("The choices of a multiple-choice question."),
});

/**
 * Names the fields of graded rows that readers show. A path such as `verdict.raw` leads into objects, and over the elements of a list: if
 * `answer` leads to a list, each element is an answer, and each other field that leads to as many elements has one per answer.
 */
export type AnswerFields = z.infer<typeof answerFieldsSchema>;
/** A condition on one field of a row. */
export type AnswerCondition = z.infer<typeof conditionSchema>;
