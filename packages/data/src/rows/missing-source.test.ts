import { expect, it } from "vitest";
import { fixForMissing, isMissingFile, withDownload } from "./missing-source.ts";

it.each([
  ["allenai/ai2_arc", "hf:allenai/ai2_arc"],
  ["allenai/ai2_arc/ARC-Easy/test", "hf:allenai/ai2_arc/ARC-Easy/test"],
  ["datasets/allenai/ai2_arc", "hf:allenai/ai2_arc"],
  ["https://huggingface.co/datasets/allenai/ai2_arc", "hf:allenai/ai2_arc"],
])("suggests a dataset of the hub for %s", (source, name) => {
  expect(fixForMissing(source, "Check the path.")).toBe(
    `Did you mean "${name}"? If it is a file: check the path.`,
  );
});

it.each([
  "questions",
  "data/questions.jsonl",
  "data/mmlu",
  "./allenai/ai2_arc",
  "../allenai/ai2_arc",
  "/data/ai2_arc",
  "a/b/c/d/e",
  "hf:allenai/ai2_arc",
  "C:\\data\\arc",
  "",
  null,
])("keeps the fix for %j", (source) => {
  expect(fixForMissing(source, "Check the path.")).toBe("Check the path.");
});

it("finds a missing file among the causes of an error", () => {
  const missing = Object.assign(new Error("no file"), { code: "ENOENT" });
  expect(isMissingFile(new Error("outer", { cause: missing }))).toBe(true);
  expect(isMissingFile(Object.assign(new Error("denied"), { code: "EACCES" }))).toBe(false);
  expect(isMissingFile("ENOENT")).toBe(false);
});

it.each([
  ["data/arc_challenge/test.jsonl", "arc_challenge --out data"],
  ["../shared/data/mmlu", "mmlu --out ../shared/data"],
  ["betley2025/first_plot_questions.yaml", "betley2025 --out ."],
])("names the command that writes %s", (path, args) => {
  expect(withDownload(path, "Check the path.")).toBe(
    `Check the path. \`npx periodic-eval data get ${args}\` writes that folder.`,
  );
});

it.each(["data/questions.jsonl", "hf:openai/gsm8k", "mmlu.jsonl"])("adds no command for %s", (path) => {
  expect(withDownload(path, "Check the path.")).toBe("Check the path.");
});
