import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { dataFolderOf } from "../commands/eval/suite.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

it.each([
  ["gsm8k", "gsm8k"],
  ["mmlu", "mmlu"],
  ["mmlu_high_school_biology", "mmlu"],
  ["truthfulqa_mc2", "truthfulqa"],
  ["arc_challenge", "arc_challenge"],
])("finds the documents of %s in the folder %s", async (task, expected) => {
  const data = temporaryFolder();
  for (const name of ["arc_challenge", "gsm8k", "mmlu", "truthfulqa"]) await mkdir(join(data, name));
  expect(dataFolderOf(task, data)).toBe(expected);
  expect(() => dataFolderOf("arc_easy", data)).toThrow(
    `expected ${join(data, "arc_easy")} or ${join(data, "arc")}.`,
  );
});

it("returns a dataset that is named instead of a folder", () => {
  expect(dataFolderOf("gsm8k", "hf:openai/gsm8k")).toBe("hf:openai/gsm8k");
});

it("suggests the dataset that a missing folder may mean", () => {
  expect(() => dataFolderOf("gsm8k", "openai/gsm8k")).toThrow(
    expect.objectContaining({ where: "--data", fix: expect.stringContaining('"hf:openai/gsm8k"') }),
  );
});
