// Each task has four documents, in the layouts of ../shared/data and of the hub.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";

const count = 4;
const made = <T>(make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));

export const smallRows = {
  arc: made((at) => ({
    question: `Which is ${at}?`,
    choice_labels: ["1", "2", "3"],
    choices: [`one ${at}`, `two ${at}`, `three ${at}`],
    correct_answer: String(1 + (at % 3)),
  })),
  arcOfHub: made((at) => ({
    id: `q${at}`,
    question: `Which is ${at}?`,
    choices: { text: [`one ${at}`, `two ${at}`, `three ${at}`], label: ["1", "2", "3"] },
    answerKey: String(1 + (at % 3)),
  })),
  hellaswag: made((at) => ({
    activity_label: "Juggling",
    ctx_a: `A clown ${at} throws.`,
    ctx_b: "he",
    endings: [`catches ${at}.`, "falls.", "sings.", "sleeps."],
    label: String(at),
  })),
  truthfulqa: made((at) => ({
    question: `Is it ${at}?`,
    mc2_targets: { choices: [`It is ${at}`, "It is", "It is not"], labels: [1, 1, 0] },
  })),
  gsm8k: made((at) => ({ question: `${at} and 1?`, answer: `${at} + 1 = ${at + 1}\n#### ${at + 1}` })),
  mmlu: made((at) => ({ question: ` What is ${at}? `, choices: ["a", "b", "c", "d"], answer: at })),
};

const mmluCsv = `question,choice0,choice1,choice2,choice3,answer\n${smallRows.mmlu
  .map(({ question, choices, answer }) => [question, ...choices, answer].join(","))
  .join("\n")}\n`;

export const linesOf = (rows: readonly object[]): string =>
  rows.map((row) => `${JSON.stringify(row)}\n`).join("");

/** Writes files, by their paths below `folder`, and returns `folder`. */
async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

/** Creates a temporary folder with these files, which is removed when the running test ends. */
export async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tasks-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return writeFiles(folder, files);
}

/** Writes the rows of each task, in all splits, to a subfolder of `root`; returns the subfolders by task. */
export async function writeSmallRows(
  root: string,
  subjects: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  const splits = (task: string, rows: readonly object[], ...names: readonly string[]) =>
    writeFiles(join(root, task), Object.fromEntries(names.map((name) => [`${name}.jsonl`, linesOf(rows)])));
  const ofSubject = (subject: string) => [
    [`test/${subject}_test.csv`, mmluCsv],
    [`dev/${subject}_dev.csv`, mmluCsv],
  ];
  return {
    arc: await splits("arc", smallRows.arc, "test", "train"),
    hellaswag: await splits("hellaswag", smallRows.hellaswag, "validation", "train"),
    truthfulqa: await splits("truthfulqa", smallRows.truthfulqa, "validation"),
    gsm8k: await splits("gsm8k", smallRows.gsm8k, "test", "train"),
    mmlu: await writeFiles(join(root, "mmlu"), Object.fromEntries(subjects.flatMap(ofSubject))),
  };
}
