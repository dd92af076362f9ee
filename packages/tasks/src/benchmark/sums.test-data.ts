import { measure, type EvaluableModel } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { benchmarkFolder, type FolderFiles } from "./benchmark-folder.test-data.ts";
import { benchmarkEvaluation } from "./benchmark-evaluation.ts";
import type { BenchmarkOptions } from "./benchmark-options.ts";
import type { BenchmarkRow } from "./benchmark-task.ts";

/** Addition tasks with prompts such as `1 + 1 =`, and two tasks whose answers are words. */
export const tasks = [
  ...[1, 2, 3, 4].map((n) => ({
    id: `sum-${n}`,
    prompt: `${n} + ${n} =`,
    answer: 2 * n,
    verifier: "numeric",
    metadata: { topic: "sums", level: n % 2 },
  })),
  {
    id: "word",
    prompt: "Say yes.",
    answer: "yes",
    verifier: { name: "contains", args: { ignore_case: true } },
    metadata: { topic: "words" },
  },
  { id: "odd", prompt: "Say no.", answer: "no", verifier: "exact_match", metadata: { topic: "words" } },
].map((task) => ({ ...task, split: "val" }));

/** Answers sums up to 3 + 3 correctly, and everything else with "Yes!". */
export const reply = (prompt: string) => {
  const sum = /(\d) \+ \d =/.exec(prompt);
  return sum === null ? "Yes!" : String(Math.min(6, 2 * Number(sum[1])));
};

export async function measured(
  options: Partial<BenchmarkOptions> = {},
  model: EvaluableModel = fakeModel({ reply }),
  files: FolderFiles = { tasks },
) {
  const benchmark = await benchmarkFolder(files);
  const { snapshot, rows } = await measure(
    benchmarkEvaluation({ name: "sums", benchmark, ...options }),
    model,
  );
  return { snapshot, rows: rows as readonly BenchmarkRow[], benchmark };
}
