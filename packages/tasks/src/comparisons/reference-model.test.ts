import { cp, mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { measure, type AnyEvaluation } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { beforeEach, expect, it } from "vitest";
import { evaluationsOf } from "../evaluations-of.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import type { ReferenceEngine } from "./reference-model.ts";

let folder = "";
let events: string[] = [];
beforeEach(async () => {
  folder = temporaryFolder();
  events = [];
  await writeFile(join(folder, "prompts.jsonl"), '{"prompt":"Why?"}\n');
  await mkdir(join(folder, "base"));
  await writeAdapter("adapter", "first weights");
});

async function writeAdapter(name: string, weights: string, base = "base"): Promise<void> {
  const place = join(folder, name);
  await mkdir(place, { recursive: true });
  await writeFile(
    join(place, "adapter_config.json"),
    JSON.stringify({ base_model_name_or_path: base, r: 2 }),
  );
  await writeFile(join(place, "adapter_model.safetensors"), weights);
}

/** An engine that records when weights are loaded and freed. */
const engine: ReferenceEngine = {
  async outlineCheckpoint(source) {
    return {
      model: fakeModel({ identity: { name: basename(source) } }),
      weights: async () => "sha256:of-the-base",
    };
  },
  async openCheckpoint() {
    events.push("load");
    return { model: fakeModel(), dispose: () => void events.push("dispose") };
  },
};

/** Opens an entry that measures against `base` with an adapter, with a registry of its own. */
async function open(adapter = "adapter", base = "base") {
  const registry = evaluationsOf({}, { engine });
  return registry["kl_to_reference"]!(
    {
      kl_to_reference: join(folder, "prompts.jsonl"),
      reference: { model: join(folder, base), adapter: join(folder, adapter) },
    },
    "suite",
  );
}

/** Measures as the session does, up to `close`. */
async function measureWith(evaluation: AnyEvaluation) {
  await evaluation.check?.({ signal: new AbortController().signal });
  return measure(evaluation, fakeModel());
}

/** Measures, closes and returns the snapshot's provenance. */
async function provenanceOf(adapter?: string, base?: string) {
  const evaluation = await open(adapter, base);
  const { snapshot } = await measureWith(evaluation);
  await evaluation.close!();
  return snapshot.provenance.evaluation as { readonly reference: object; readonly reference_hash: string };
}

it("gives a reference another hash when its adapter is trained again at the same path", async () => {
  const before = await provenanceOf();
  expect(before.reference).toMatchObject({
    weights: "sha256:of-the-base",
    adapter: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
  });
  await writeAdapter("adapter", "other weights, and more");
  expect((await provenanceOf()).reference_hash).not.toBe(before.reference_hash);
});

it("gives a reference the same provenance after its folders were moved", async () => {
  const before = await provenanceOf();
  await cp(join(folder, "base"), join(folder, "moved-base"), { recursive: true });
  await writeAdapter("moved-adapter", "first weights", "moved-base");
  expect(await provenanceOf("moved-adapter", "moved-base")).toEqual(before);
});

it("loads a reference once for several registries, and frees it when the last of them closes its entry", async () => {
  const [first, second] = [await open(), await open()];
  await measureWith(first);
  await measureWith(second);
  await measureWith(second);
  expect(events).toEqual(["load"]);
  await first.close!();
  await first.close!();
  await measureWith(second);
  expect(events).toEqual(["load"]);
  await second.close!();
  expect(events).toEqual(["load", "dispose"]);
  await measureWith(second);
  await second.close!();
  expect(events).toEqual(["load", "dispose", "load", "dispose"]);
});
