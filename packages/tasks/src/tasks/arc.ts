import { dataError, quoteValue } from "@periodic-eval/contracts/options";
import { type PlacedRow } from "@periodic-eval/data";
import { multipleChoiceMetrics } from "../families/multiple-choice.ts";
import { choiceTask, type ChoiceQuestion } from "./task-kinds.ts";
import { filledTextOf, filledTextsOf, objectOf } from "./row-fields.ts";
import { onePart } from "./task-documents.ts";
import { splitOf } from "./split-source.ts";
import type { Task } from "./task.ts";

/**
 * ARC (arXiv:1803.05457), equal to lm-evaluation-harness 0.4.13: `Question: …\nAnswer:` with each choice as a continuation.
 * Metrics: `acc` and `acc_norm`. Examples come from `train`.
 *
 * Data: `test.jsonl` of `{question, choice_labels, choices, correct_answer}`, or the hub's `allenai/ai2_arc`
 * (`{question, choices: {label, text}, answerKey}`), in a folder or from `hf:allenai/ai2_arc`.
 */
const arcTask = (name: string, config: string): Task =>
  choiceTask({
    name,
    version: "1.0",
    parts: onePart(splitOf("test", config), splitOf("train", config)),
    read: readArc,
    ask: ({ question }) => `Question: ${question}\nAnswer:`,
    metrics: multipleChoiceMetrics,
  });

export const arcChallenge: Task = arcTask("arc_challenge", "ARC-Challenge");
export const arcEasy: Task = arcTask("arc_easy", "ARC-Easy");

function readArc(row: PlacedRow): ChoiceQuestion {
  const isHub = "answerKey" in row.row;
  const listed = isHub ? objectOf(row, "choices") : row;
  const [choices, labels] = isHub
    ? [filledTextsOf(listed, "text"), filledTextsOf(listed, "label")]
    : [filledTextsOf(row, "choices"), filledTextsOf(row, "choice_labels")];
  const answer = filledTextOf(row, isHub ? "answerKey" : "correct_answer");
  if (labels.length !== choices.length) {
    const got = `${labels.length} labels and ${choices.length} choices`;
    throw dataError(row.place, got, "as many labels as choices", "Write one label per choice.");
  }
  const gold = labels.indexOf(answer);
  if (gold >= 0) return { question: filledTextOf(row, "question"), choices, gold };
  const expected = `one of the labels ${labels.join(", ")}`;
  throw dataError(
    row.place,
    `the answer ${quoteValue(answer)}`,
    expected,
    "Correct that row, or leave it out.",
  );
}
