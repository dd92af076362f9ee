import { readArcRow, type PlacedRow } from "@periodic-eval/data";
import { multipleChoiceMetrics } from "../families/multiple-choice.ts";
import { choiceTask, type ChoiceQuestion } from "./task-kinds.ts";
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
  const { question, labels, choices, gold } = readArcRow(row);
  return { question, choices, gold: labels.indexOf(gold) };
}
