import { filledText, filledTexts } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { strip } from "../ifeval/text/pattern.ts";
import type { PlacedRow } from "@periodic-eval/data";
import { multipleChoiceMetrics } from "../families/multiple-choice.ts";
import { choiceTask, type ChoiceQuestion } from "./task-kinds.ts";
import { fieldsOf, indexBelow, onePart } from "./task-documents.ts";
import { splitOf } from "./split-source.ts";
import type { Task } from "./task.ts";

/**
 * HellaSwag (arXiv:1905.07830), equal to lm-evaluation-harness 0.4.13, on `validation` (`test` has no labels): activity and context
 * with each ending as a continuation, without WikiHow's brackets. Metrics: `acc` and `acc_norm`. Examples come from `train`.
 *
 * Data: rows of `{activity_label, ctx_a, ctx_b, endings, label}`, the format of the hub's `Rowan/hellaswag`, in a folder
 * (`validation.jsonl`) or from `hf:Rowan/hellaswag`.
 */
export const hellaswag: Task = choiceTask({
  name: "hellaswag",
  version: "1.0",
  parts: onePart(splitOf("validation", "default", "data"), splitOf("train", "default", "data")),
  read: readHellaswag,
  ask: ({ question }) => question,
  drawsOneMore: true,
  metrics: multipleChoiceMetrics,
});

const rowSchema = z.object({
  endings: filledTexts(),
  activity_label: filledText(),
  ctx_a: z.string("a string"),
  ctx_b: z.string("a string"),
  label: indexBelow(4),
});

function readHellaswag(row: PlacedRow): ChoiceQuestion {
  const { endings, activity_label: activity, ctx_a: first, ctx_b: second, label } = fieldsOf(row, rowSchema);
  return {
    question: cleaned(`${activity}: ${first} ${capitalized(second)}`),
    choices: endings.map(cleaned),
    gold: label,
  };
}

/** Implements Python's `str.capitalize`, which also lower-cases everything after the first letter. */
const capitalized = (text: string): string => {
  const [first = "", ...rest] = text;
  return first.toUpperCase() + rest.join("").toLowerCase();
};

const cleaned = (text: string): string =>
  strip(text)
    .replaceAll(" [title]", ". ")
    .replace(/\[[^\n]*?\]/g, "")
    .replaceAll("  ", " ");
