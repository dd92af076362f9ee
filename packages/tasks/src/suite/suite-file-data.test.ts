import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sourceOfTask } from "./suite-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

/** A data folder with mmlu/ and truthfulqa/. */
const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  for (const name of ["mmlu", "truthfulqa"]) await mkdir(join(folder, name));
});

it.each<[task: string, data: string | undefined, given: string | null, expected: string]>([
  // Absolute paths and datasets of the suite come first, then the caller's dataset.
  ["mmlu", "/other/mmlu", "DIR", "/other/mmlu"],
  ["mmlu", "hf:owner/mmlu", "DIR", "hf:owner/mmlu"],
  ["mmlu", undefined, "hf:owner/all", "hf:owner/all"],
  ["gsm8k", "gsm8k", "hf:owner/all", "hf:owner/all"],
  // A file or folder that the suite names is not replaced by it.
  ["truthfulqa_mc2", "truthfulqa", "hf:owner/all", "DIR/truthfulqa"],
  ["arc_challenge", "questions.jsonl", "hf:owner/all", "DIR/questions.jsonl"],
  // A folder with the layout of `data get`, given or beside the suite.
  ["mmlu_anatomy", undefined, "DIR", "DIR/mmlu"],
  ["truthfulqa_mc2", undefined, null, "DIR/truthfulqa"],
  ["truthfulqa_mc2", "truthfulqa", null, "DIR/truthfulqa"],
  // Without a folder, the hub, unless the caller or the suite names another place.
  ["gsm8k", undefined, null, "hf:openai/gsm8k"],
  ["arc_easy", "arc_easy", null, "hf:allenai/ai2_arc"],
  ["gsm8k", undefined, "DIR", "DIR/gsm8k"],
  ["gsm8k", "my-gsm8k", null, "DIR/my-gsm8k"],
  ["facts", undefined, null, "DIR/facts"],
])("reads %s with data %j and --data %j from %s", (task, data, given, expected) => {
  const at = (text: string) => text.replace(/^DIR/, folder);
  expect(sourceOfTask(task, data, { given: given && at(given), folder })).toBe(at(expected));
});
