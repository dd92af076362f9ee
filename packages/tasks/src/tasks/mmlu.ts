import { filledText } from "@periodic-eval/contracts/options";
import * as z from "zod";
import type { MetricKit } from "@periodic-eval/core";
import { strip } from "../ifeval/text/pattern.ts";
import type { PlacedRow } from "@periodic-eval/data";
import { multipleChoiceMetrics, type MultipleChoiceRow } from "../families/multiple-choice.ts";
import { choiceTask, type ChoiceQuestion } from "./task-kinds.ts";
import { mmluGroups } from "./datasets.ts";
import { fieldsOf, indexBelow, type TaskPart } from "./task-documents.ts";
import type { Task } from "./task.ts";

const letters = ["A", "B", "C", "D"] as const;

/**
 * MMLU (arXiv:2009.03300), equal to lm-evaluation-harness 0.4.13: a line that names the subject, then the question with four
 * choices; the letters are the continuations. Examples are the subject's first rows of `dev`; `limit` applies to each subject.
 * `acc` is over all documents, so subjects weigh by size; further metrics are `acc/<subject>` and `acc/<group>`. Tasks: `mmlu`,
 * `mmlu_<group>` (`mmlu_stem`) and `mmlu_<subject>` (`mmlu_anatomy`).
 *
 * Data: `test/<subject>_test.csv` and `dev/<subject>_dev.csv` with the header `question,choice0,…,choice3,answer`; or the
 * format of the hub's `cais/mmlu` (`{question, choices, answer}`, one config per subject), in a folder, also as
 * `test/<subject>_test.jsonl`, or from `hf:cais/mmlu`.
 * `fewshotPool` is such a folder, or the file of one subject.
 */
const mmluTask = (name: string, version: string, parts: readonly TaskPart[]): Task =>
  choiceTask({
    name,
    version,
    parts,
    sampler: "first",
    read: readMmlu,
    ask: ({ question }) => question,
    metrics: (kit) => mmluMetrics(kit),
  });

const subjectTasks = Object.entries(mmluGroups).flatMap(([group, subjects]) => [
  mmluTask(
    `mmlu_${group}`,
    "2",
    subjects.map((subject) => partOf(subject, [subject])),
  ),
  ...subjects.map((subject) => mmluTask(`mmlu_${subject}`, "1.0", [partOf(subject, [])])),
]);

export const mmluTasks: readonly Task[] = [
  mmluTask(
    "mmlu",
    "2",
    Object.entries(mmluGroups).flatMap(([group, subjects]) =>
      subjects.map((subject) => partOf(subject, [subject, group])),
    ),
  ),
  ...subjectTasks,
];

function partOf(subject: string, groups: readonly string[]): TaskPart {
  const about = subject.replaceAll("_", " ");
  const split = (name: string) => ({
    files: [
      ...["csv", "jsonl"].map((ending) => `${name}/${subject}_${name}.${ending}`),
      `${subject}/${name}-00000-of-00001.parquet`,
    ],
    hub: `${subject}/${name}`,
  });
  return {
    subject,
    groups,
    description: `The following are multiple choice questions (with answers) about ${about}.\n\n`,
    test: split("test"),
    pool: split("dev"),
  };
}

/** Groups `acc` only: groups of all metrics would fill the page. */
function mmluMetrics(kit: MetricKit<MultipleChoiceRow>) {
  const { acc, acc_norm: _, ...companions } = multipleChoiceMetrics(kit);
  const ungrouped = Object.entries(companions).map(([name, metric]) => {
    return [name, { ...metric, options: { ...metric.options, by: () => null } }] as const;
  });
  return { acc: acc!, ...Object.fromEntries(ungrouped) };
}

const fields = { question: filledText(), answer: indexBelow(letters.length) };
const choice = z.string("a string");
const four = z.array(choice, "four strings").length(letters.length, "four strings");
const hubSchema = z.object({ ...fields, choices: four });
const csvSchema = z.object({ ...fields, choice0: choice, choice1: choice, choice2: choice, choice3: choice });

function readMmlu(row: PlacedRow): ChoiceQuestion {
  const { question, answer, ...read } = fieldsOf(row, "choices" in row.row ? hubSchema : csvSchema);
  const texts = "choices" in read ? read.choices : Object.values(read);
  const lines = texts.map((text, at) => `${letters[at]!}. ${text}\n`);
  return { question: `${strip(question)}\n${lines.join("")}Answer:`, choices: letters, gold: answer };
}
