import { codeOption } from "@periodic-eval/contracts/options";
import {
  multipleChoiceEvaluation,
  readDocuments,
  rolloutEvaluation,
  type Task,
  type TaskOptions,
} from "@periodic-eval/tasks";
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { microWorld } from "../demo/micro-world.ts";

interface Fact {
  readonly id: string;
  readonly question: string;
  readonly choices: readonly string[];
  readonly gold: number;
}

const factsOf =
  ({ data, limit = null }: TaskOptions) =>
  async (): Promise<readonly Fact[]> => {
    const { rows } = await readDocuments(join(data, "test.jsonl"), codeOption("facts", "data"));
    return rows.slice(0, limit ?? undefined).map(({ row }, at) => ({
      id: String(at),
      question: row["question"] as string,
      choices: row["choices"] as readonly string[],
      gold: (row["choice_labels"] as readonly string[]).indexOf(row["correct_answer"] as string),
    }));
  };

const asked = ({ chat }: TaskOptions, { question }: Fact) =>
  chat === undefined
    ? `${question} Answer:`
    : {
        messages: [{ role: "user", content: question }],
        ...(chat.system !== undefined && { system: { text: chat.system } }),
      };

/** The embedded model's questions as a task with two groups. */
const facts: Task = {
  name: "facts",
  version: "1.0",
  defaultShots: 0,
  open: (options) =>
    multipleChoiceEvaluation<Fact>({
      name: "facts",
      documents: factsOf(options),
      ...(options.subsample && { subsample: options.subsample }),
      by: ({ question }) => (question.includes("colour") ? "colours" : "others"),
      prompt: (fact) => asked(options, fact),
      choices: ({ choices }) => choices,
      gold: ({ gold }) => gold,
    }),
};

const replies: Task = {
  name: "facts_reply",
  version: "3.0",
  defaultShots: 0,
  open: (options) =>
    rolloutEvaluation<Fact>({
      name: "facts_reply",
      documents: factsOf(options),
      ...(options.subsample && { subsample: options.subsample }),
      prompt: (fact) => asked(options, fact),
      maxNewTokens: 4,
      check: ({ choices, gold }, text) => text.includes(choices[gold]!),
    }),
};

/** Loads tasks that the embedded model answers within a second. */
export const smallTasks = () => Promise.resolve({ facts, facts_reply: replies });

/** Writes their data to `<folder>/facts/test.jsonl` and returns the folder. */
export async function writeSmallData(folder: string): Promise<string> {
  await mkdir(join(folder, "facts"), { recursive: true });
  await copyFile(microWorld("questions.jsonl"), join(folder, "facts", "test.jsonl"));
  return folder;
}
