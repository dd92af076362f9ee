import { cp, mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { measure } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/core/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { evaluationsOf } from "../evaluations-of.ts";
import { disposeReferences, type ReferenceEngine } from "./reference-model.ts";
import { temporaryFolder } from "../../../core/src/testing/temporary-folder.test-data.ts";

let folder = "";
let events: string[] = [];
beforeEach(async () => {
  folder = temporaryFolder();
  events = [];
  await writeFile(join(folder, "prompts.jsonl"), '{"prompt":"Why?"}\n');
  await mkdir(join(folder, "base"));
  await writeAdapter("adapter", "first weights");
});
afterEach(async () => {
  await disposeReferences();
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

/** Measures against `base` with an adapter, with a registry of its own, and returns the snapshot's provenance. */
async function provenanceOf(adapter = "adapter", base = "base") {
  const registry = evaluationsOf({}, { engine });
  const evaluation = await registry["kl_to_reference"]!(
    {
      kl_to_reference: join(folder, "prompts.jsonl"),
      reference: { model: join(folder, base), adapter: join(folder, adapter) },
    },
    "suite",
  );
  await evaluation.check?.({ signal: new AbortController().signal });
  const { snapshot } = await measure(evaluation, fakeModel());
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

it("loads a reference once for several registries, and frees it with disposeReferences", async () => {
  await provenanceOf();
  await provenanceOf();
  await provenanceOf();
  expect(events).toEqual(["load"]);
  await disposeReferences();
  expect(events).toEqual(["load", "dispose"]);
  await provenanceOf();
  expect(events).toEqual(["load", "dispose", "load"]);
});
