import { expect, it } from "vitest";
import type { Json, Snapshot } from "@periodic-eval/contracts";
import { exampleSnapshot } from "@periodic-eval/testing";
import { differencesOf } from "./pairing.ts";
import { checkpointEvidence } from "./undisturbed.ts";

const model = {
  name: "m",
  engine: "tfjs-wasm",
  dtype: "float32",
  details: { tfjs: "4.22.0" },
  context_length: 64,
};
const snapshotWith = (provenance: Partial<Snapshot["provenance"]>, changes: Partial<Snapshot> = {}) => {
  const plain = exampleSnapshot(changes);
  return { ...plain, provenance: { ...plain.provenance, model, ...provenance } };
};
const differences = (changes: Partial<Snapshot["provenance"]>, was: Partial<Snapshot["provenance"]> = {}) =>
  differencesOf(snapshotWith(was), snapshotWith(changes));

it("pairs measurements that differ only in step, weights and seed", () => {
  const later = snapshotWith({ seed: "7" }, { step: 50, weights: "other" });
  expect(differencesOf(snapshotWith({}), later)).toEqual([]);
});

it.each<readonly [string, Partial<Snapshot["provenance"]>, string]>([
  ["a changed answer key", { items_hash: "11" }, "other items (their content or answer keys)"],
  ["another number of items", { items_hash: "11", items: 3 }, "other items (4, here 3)"],
  ["another model", { model: { ...model, name: "n" } }, "the model m (here n)"],
  ["another backend", { model: { ...model, engine: "tfjs-cpu" } }, "the backend tfjs-wasm (here tfjs-cpu)"],
  [
    "another number format",
    { model: { ...model, dtype: "bfloat16" } },
    "the number format float32 (here bfloat16)",
  ],
  ["another context length", { model: { ...model, context_length: 32 } }, "the context length 64 (here 32)"],
  [
    "another version of the backend",
    { model: { ...model, details: { tfjs: "4.23.0" } } },
    "other arithmetic of the backend (tfjs)",
  ],
  ["another tokenizer", { tokenizer: "t" }, "the tokenizer unknown (here t)"],
  ["another option", { evaluation: { sampling: { n: 2 } } }, 'the option sampling none (here {"n":2})'],
])("refuses %s", (_, changes, message) => {
  expect(differences(changes)).toEqual([message]);
});

it("pairs subsets of the same items over the items that both have", () => {
  const subset = (n: number): Json => ({ file_sha256: "f", subsample: { n } });
  expect(
    differences({ evaluation: subset(2), items: 2, items_hash: "2" }, { evaluation: subset(4) }),
  ).toEqual([]);
  expect(
    differences({ evaluation: { file_sha256: "g", subsample: { n: 2 } } }, { evaluation: subset(4) }),
  ).toEqual(['the option file_sha256 "f" (here "g")']);
});

it("pairs a checkpoint, which has the name of its folder, with its base", () => {
  const receipt = [checkpointEvidence("checkpoint-9")];
  const checkpoint = snapshotWith({ model: { ...model, name: "checkpoint-9" } }, { receipt });
  expect(differencesOf(snapshotWith({}), checkpoint)).toEqual([]);
});
