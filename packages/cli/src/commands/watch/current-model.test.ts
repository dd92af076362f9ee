import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { OpenCheckpoint } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { beforeEach, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { CheckpointGoneError, CurrentModel } from "./current-model.ts";

let path: string;
let events: string[];
beforeEach(async () => {
  path = join(temporaryFolder(), "checkpoint-5");
  events = [];
  await mkdir(path);
  for (const name of ["config.json", "trainer_state.json", "chat_template.jinja", "pytorch_model.bin"])
    await writeFile(join(path, name), "{}");
});

/** Opens models that note when they are opened and disposed. */
function currentModel(meanwhile: () => Promise<void> = async () => undefined): CurrentModel {
  const open: OpenCheckpoint = async (_base, path = null) => {
    const name = path === null ? "base" : "checkpoint";
    events.push(`open ${name}`);
    if (path !== null) await meanwhile();
    return {
      model: fakeModel(),
      fingerprint: () => `weights of ${name}`,
      dispose: () => void events.push(`dispose ${name}`),
    };
  };
  const signal = new AbortController().signal;
  return new CurrentModel(
    { open, base: "base", tokenizer: null, baseTokenizer: null, isAdapted: false, signal },
    null,
  );
}

it.each(["full", "adapter"] as const)(
  "holds two %s models at once only if they share weights",
  async (kind) => {
    const current = currentModel();
    expect((await current.get()).identity.weights).toBe("weights of base");
    await current.get();
    current.moveTo({ path, kind });
    expect((await current.get()).identity.weights).toBe("weights of checkpoint");
    await current.dispose();
    expect(events).toEqual(
      kind === "full"
        ? ["open base", "dispose base", "open checkpoint", "dispose checkpoint"]
        : ["open base", "open checkpoint", "dispose base", "dispose checkpoint"],
    );
  },
);

it("reports a checkpoint that was deleted before it is opened", async () => {
  const current = currentModel();
  current.moveTo({ path, kind: "full" });
  await rm(path, { recursive: true });
  await expect(current.get()).rejects.toBeInstanceOf(CheckpointGoneError);
  expect(events).toEqual([]);
});

it.each([
  ["is deleted", async () => rm(path, { recursive: true })],
  ["loses its chat template", async () => rm(join(path, "chat_template.jinja"))],
  ["is written again", async () => writeFile(join(path, "config.json"), "{ }")],
])("disposes a checkpoint that %s while it is opened, and reports it", async (_, change) => {
  const current = currentModel(change);
  current.moveTo({ path, kind: "adapter" });
  await expect(current.get()).rejects.toBeInstanceOf(CheckpointGoneError);
  expect(events).toEqual(["open checkpoint", "dispose checkpoint"]);
});

it("throws the error of a checkpoint that cannot be opened although it is there", async () => {
  const current = currentModel(() => Promise.reject(new Error("pickled weights")));
  current.moveTo({ path, kind: "adapter" });
  await expect(current.get()).rejects.toThrow("pickled weights");
});
