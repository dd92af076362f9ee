import { measure, PeriodicEvalError } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { feedbackEvaluations } from "./configured.ts";
import { readGeneralQuestions } from "./general.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

const questions = Array.from({ length: 8 }, (_, at) => ({ prompt: `Question ${at}?`, says: `word${at}` }));
async function fileOf(content: object): Promise<string> {
  const path = join(folder, "general.yaml");
  await writeFile(path, stringify(content));
  return path;
}

it("scores the share of answers that contain one of the right words, and no coding task", async () => {
  const probes = await fileOf({
    questions: [{ prompt: "Which colour?", says: ["blue", "azure"] }, ...questions.slice(1)],
  });
  const evaluation = await feedbackEvaluations["feedback"]!({ feedback: "general", probes }, "here");
  // Right: "Azure", word1 and word2. Wrong: word33 is not the whole word word3.
  const answers: Readonly<Record<string, string>> = {
    "Which colour?": "It is AZURE.",
    "Question 1?": "word1",
    "Question 2?": "A word2, I think.",
    "Question 3?": "word33",
  };
  const reply = (prompt: string) =>
    Object.entries(answers).find(([question]) => prompt.includes(question))?.[1] ?? "No.";
  const { snapshot } = await measure(evaluation, fakeModel({ reply }));
  const values = ["general", "instructions", "coding"].map((name) => snapshot.metrics[name]!.value);
  expect(values).toEqual([3 / 8, 3 / 8, null]);
  expect(Object.keys(snapshot["failures"] as object)).toHaveLength(5);
});

it.each([
  [{ questions: questions.slice(1) }, ["questions"], "at least 8 questions"],
  [
    { questions: [{ prompt: "a" }, ...questions] },
    ["questions", 0, "says"],
    "a string, or a non-empty array",
  ],
  [
    { questions: [{ prompt: " ", says: "a" }, ...questions] },
    ["questions", 0, "prompt"],
    "a non-empty string",
  ],
  [{ question: questions }, ["question"], "questions"],
])("rejects %j at its line", async (content, path, expected) => {
  const error: unknown = await readGeneralQuestions(await fileOf(content)).catch((thrown: unknown) => thrown);
  if (!PeriodicEvalError.is(error, "config")) throw new Error(`no config error: ${String(error)}`);
  expect(error.path).toEqual(path);
  expect(error.where).toMatch(/general\.yaml:\d+/);
  expect(error.expected).toContain(expected);
});
