import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OpenedModel } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { Evaluator } from "./evaluator.ts";
import { choiceTask, replyTask, suiteText } from "../suite/fake-tasks.test-data.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

let root: string;
beforeEach(async () => {
  root = temporaryFolder();
  await writeFile(join(root, "suite.yaml"), suiteText);
});

async function checkpoint(name: string): Promise<string> {
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  return folder;
}

interface Opening {
  readonly opened?: Partial<OpenedModel>;
  readonly sources?: unknown[];
  readonly name?: string;
}

const run = (
  folder: string,
  adapter: string | null,
  { opened = {}, sources = [], name = "lora" }: Opening = {},
) =>
  Evaluator.fromCheckpoint(folder, {
    name,
    tasks: { choices: choiceTask(), replies: replyTask() },
    suite: join(root, "suite.yaml"),
    results: join(root, "results"),
    adapter,
    openModel: async (...source) => {
      sources.push(source);
      return { model: fakeModel(), fingerprint: () => "w", ...opened };
    },
  }).run();

describe("fromCheckpoint", () => {
  it("opens the given checkpoint, names it in the results, and disposes it", async () => {
    const folder = await checkpoint("base");
    const adapter = await checkpoint("adapter");
    const sources: unknown[] = [];
    let disposed = 0;
    const { run: record } = await run(folder, adapter, {
      sources,
      opened: { dispose: () => void disposed++ },
    });
    expect(sources).toEqual([[folder, adapter, { tokenizer: null }]]);
    expect(disposed).toBe(1);
    expect(record).toMatchObject({
      model: folder,
      adapter,
      model_args: `pretrained=${folder},peft=${adapter}`,
    });
  });

  it("disposes a model that cannot be measured", async () => {
    let disposed = 0;
    const { generate: _, ...silent } = fakeModel();
    const opened = { model: silent, dispose: () => void disposed++ };
    await expect(run(await checkpoint("base"), null, { opened })).rejects.toThrow('ability "generate"');
    expect(disposed).toBe(1);
  });

  it("uses the fingerprint that a model provides", async () => {
    const model = fakeModel({ identity: { weights: "served-1" } });
    const opened = { model, fingerprint: () => null };
    const folder = await checkpoint("base");
    await run(folder, null, { opened });
    expect((await run(folder, null, { opened })).measured).toEqual([]);
  });
});
