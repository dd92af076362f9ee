import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OpenedModel } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { Evaluator } from "./evaluator.ts";
import { choiceTask, replyTask, suiteText } from "../suite/fake-tasks.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

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
  })[0].run();

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

describe("the configuration of a checkpoint", () => {
  const opened = (folder: string, adapter: string | null = null) =>
    Evaluator.fromCheckpoint(folder, {
      name: "base",
      tasks: [replyTask()],
      adapter,
      openModel: () => Promise.reject(new Error("loaded")),
    });

  it("is returned beside the evaluator, without loading the weights", async () => {
    const [folder, adapter] = [await checkpoint("base"), await checkpoint("adapter")];
    await writeFile(join(folder, "config.json"), '{"model_type": "llama"}');
    await writeFile(join(adapter, "adapter_config.json"), '{"r": 8}');
    await writeFile(join(adapter, "trainer_state.json"), '{"exact": {"learningRate": 0.001}}');
    const [evaluator, config] = opened(folder, adapter);
    expect(evaluator).toBeInstanceOf(Evaluator);
    expect(config).toEqual({
      model: { model_type: "llama" },
      adapter: { r: 8 },
      training: { learningRate: 0.001 },
    });
  });

  it("is null where the folder has none, and an error where it is damaged", async () => {
    const [, config] = opened("owner/name");
    expect(config).toEqual({ model: null, adapter: null, training: null });
    const folder = await checkpoint("damaged");
    await writeFile(join(folder, "config.json"), "{");
    expect(() => opened(folder)).toThrow(join(folder, "config.json"));
  });
});
