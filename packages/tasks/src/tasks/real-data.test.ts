// Reads every document of the real files, and builds its prompt.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Prompt } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { hostDataset, startHub, type HubServer } from "../../../data/src/hub/hub-server.test-data.ts";
import { taskNamed, tasks } from "./registry.ts";

const data = "../shared/data";
const isThere = existsSync(join(data, "gsm8k"));

interface TaskItem {
  readonly id: string;
  readonly prompt: Prompt;
  readonly choices?: readonly string[];
}

describe.skipIf(!isThere)("documents of real files (needs ../shared/data)", () => {
  it.each([
    // MMLU has 14,042 questions in 57 subjects (README of ../shared/data).
    ["mmlu", "mmlu", 14_042, 5, /\nAnswer: [A-D]\n\n/g],
    ["arc_challenge", "arc_challenge", 1172, 0, /\nAnswer: /g],
    ["truthfulqa_mc2", "truthfulqa", 817, 6, /\nA: /g],
    ["gsm8k", "gsm8k", 1319, 5, /\nAnswer: /g],
  ])("builds every prompt of %s", async (task, folder, count, examples, answered) => {
    const evaluation = taskNamed(tasks, task, "task").open({
      data: join(data, folder),
      ...(task === "mmlu" && { shots: 5 }),
    });
    const items = (await evaluation.items(fakeModel() as never)) as readonly TaskItem[];
    expect(items).toHaveLength(count);
    const isFormed = ({ prompt, choices = ["none"] }: TaskItem) => {
      const { text } = prompt as { readonly text: string };
      const shown = text.match(answered)?.length ?? 0;
      return /\n(Answer|A):$/.test(text) && shown === examples && choices.every((one) => one.trim() !== "");
    };
    expect(items.filter((item) => !isFormed(item))).toEqual([]);
  });
});

describe("hf:owner/dataset", () => {
  let hub: HubServer;
  let cache: string;
  beforeAll(async () => {
    hub = await startHub();
    cache = await mkdtemp(join(tmpdir(), "hub-"));
  });
  beforeEach(() => {
    vi.stubEnv("HF_ENDPOINT", hub.url);
    vi.stubEnv("HF_HUB_CACHE", cache);
    for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
  });
  afterAll(async () => {
    await hub.close();
    await rm(cache, { recursive: true });
  });

  it("selects config and split, and reads the hub once for all measurements", async () => {
    const problems = (...questions: readonly string[]) =>
      new Uint8Array(
        parquetWriteBuffer({
          columnData: [
            { name: "question", data: [...questions], type: "STRING" },
            { name: "answer", data: questions.map((_, at) => `#### ${at}`), type: "STRING" },
          ],
        }),
      );
    hostDataset(hub, "openai/gsm8k", {
      "main/test/0000.parquet": problems("One?"),
      "main/train/0000.parquet": problems("Two?"),
      "socratic/test/0000.parquet": problems("No?"),
    });
    const evaluation = taskNamed(tasks, "gsm8k", "task").open({ data: "hf:openai/gsm8k", shots: 1 });
    const items = (await evaluation.items(fakeModel() as never)) as readonly TaskItem[];
    expect(items[0]!.prompt).toEqual({
      text: "Question: Two?\nAnswer: #### 0\n\nQuestion: One?\nAnswer:",
    });
    const requests = hub.requests.length;
    expect(await evaluation.items(fakeModel() as never)).toEqual(items);
    expect(hub.requests).toHaveLength(requests);
  });
});
