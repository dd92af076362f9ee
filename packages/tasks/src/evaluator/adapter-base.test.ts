import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Json } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { Evaluator } from "./evaluator.ts";
import { choiceTask, replyTask, suiteText } from "../suite/fake-tasks.test-data.ts";
import type { CheckpointSource, OpenedModel } from "./evaluator-options.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

let root: string;
beforeEach(async () => {
  root = temporaryFolder();
  await writeFile(join(root, "suite.yaml"), suiteText);
});

async function checkpoint(name: string, weights: string, config: Json = {}): Promise<string> {
  const folder = join(root, name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
  await writeFile(join(folder, "model.safetensors"), weights);
  return folder;
}

async function adapterOf(base: Json, frozenWeights?: string): Promise<string> {
  const folder = join(root, "adapter");
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, "adapter_config.json"),
    JSON.stringify({ base_model_name_or_path: base, r: 8 }),
  );
  if (frozenWeights !== undefined)
    await writeFile(join(folder, "trainer_state.json"), JSON.stringify({ exact: { frozenWeights } }));
  return folder;
}

interface Opening {
  readonly opened?: Partial<OpenedModel>;
  readonly sources?: CheckpointSource[];
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
    openModel: async (source) => {
      sources.push(source);
      return { model: fakeModel(), fingerprint: () => "w", ...opened };
    },
  }).run();

describe("fromCheckpoint", () => {
  it("opens the given checkpoint, names it in the results, and disposes it", async () => {
    const folder = await checkpoint("base", "B");
    const adapter = await adapterOf(folder);
    const sources: CheckpointSource[] = [];
    let disposed = 0;
    const { run: record } = await run(folder, adapter, {
      sources,
      opened: { dispose: () => void disposed++ },
    });
    expect(sources).toEqual([{ folder, adapter, tokenizer: null }]);
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
    await expect(run(await checkpoint("base", "B"), null, { opened })).rejects.toThrow('ability "generate"');
    expect(disposed).toBe(1);
  });

  it("uses the fingerprint that a model provides", async () => {
    const model = fakeModel({ identity: { weights: "served-1" } });
    const opened = { model, fingerprint: () => null };
    const folder = await checkpoint("base", "B");
    await run(folder, null, { opened });
    expect((await run(folder, null, { opened })).measured).toEqual([]);
  });
});

describe("an adapter's base", () => {
  it("matches the same folder, however its path is written", async () => {
    const folder = await checkpoint("base", "B");
    for (const written of [`${folder}/`, relative(process.cwd(), folder), join(folder, "..", "base")]) {
      await run(folder, await adapterOf(written));
    }
  });

  it("matches a folder with the same weights", async () => {
    const folder = await checkpoint("base", "B");
    await run(folder, await adapterOf(await checkpoint("copy", "B")));
    const other = await checkpoint("deeper/base", "C");
    const sources: CheckpointSource[] = [];
    await expect(run(folder, await adapterOf(other), { sources })).rejects.toThrow(
      `adapter_config.json: base_model_name_or_path: got an adapter of "${other}", expected an adapter of "${folder}"`,
    );
    expect(sources).toEqual([]); // before anything is loaded
  });

  it("matches a hub name that ends like the folder's name, or like the name in its config.json", async () => {
    await run(await checkpoint("smollm2-135m", "B"), await adapterOf("HuggingFaceTB/SmolLM2-135M"));
    const named = await checkpoint("here", "B", { _name_or_path: "HuggingFaceTB/SmolLM2-135M" });
    await run(named, await adapterOf("HuggingFaceTB/SmolLM2-135M"), { name: "named" });
    const cached = `models--HuggingFaceTB--SmolLM2-135M/snapshots/${"0".repeat(40)}`;
    await run(await checkpoint(cached, "B"), await adapterOf("HuggingFaceTB/SmolLM2-135M"), {
      name: "cached",
    });
    await run("HuggingFaceTB/SmolLM2-135M@main", await adapterOf("HuggingFaceTB/SmolLM2-135M"), {
      name: "main",
    });
    for (const folder of [named, await checkpoint(cached, "B"), "HuggingFaceTB/SmolLM2-135M"]) {
      await expect(
        run(folder, await adapterOf("HuggingFaceTB/SmolLM2-360M"), { name: "other" }),
      ).rejects.toThrow('an adapter of "HuggingFaceTB/SmolLM2-360M"');
    }
  });

  it("is identified by the hash of its weights in a checkpoint of our trainers, whatever its name", async () => {
    const folder = await checkpoint("base", "B");
    const elsewhere = await checkpoint("other", "C");
    const opened = { baseFingerprint: () => "frozen-1" };
    await run(folder, await adapterOf(elsewhere, "frozen-1"), { opened });
    let disposed = 0;
    const dispose = () => void disposed++;
    await expect(
      run(folder, await adapterOf(folder, "frozen-2"), { opened: { ...opened, dispose } }),
    ).rejects.toThrow("the weights differ");
    expect(disposed).toBe(1);
    // Without a fingerprint of the model, only the names are compared.
    await run(folder, await adapterOf(folder, "frozen-2"));
    await expect(run(folder, await adapterOf(elsewhere, "frozen-1"))).rejects.toThrow("an adapter of");
  });

  it("is not checked if the adapter does not name it, and must be a string or null", async () => {
    const folder = await checkpoint("base", "B");
    await run(folder, await adapterOf(null));
    await run(folder, await adapterOf(""));
    await run(folder, "someone/adapter-on-the-hub", { name: "hub" });
    await expect(run(folder, await adapterOf(7))).rejects.toThrow(
      "adapter_config.json: base_model_name_or_path: got 7, expected a string or null",
    );
  });
});
