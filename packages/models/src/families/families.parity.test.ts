import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { openSafetensors, type SafetensorsFile } from "@periodic-eval/safetensors";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { loadCausalLM } from "../checkpoint/load.ts";
import type { CheckpointLM } from "../checkpoint/model.ts";
import { testedEngines } from "../testing/engines.ts";
import { supportedModelTypes } from "./registry.ts";
import { fixtures } from "../testing/fixtures.ts";

/** Over all stored positions; the smallest effect of a wrong option in the fixtures is 1.1e-3. */
const tolerance = 2e-4;

const folders = (existsSync(fixtures) ? readdirSync(fixtures) : [])
  .filter((name) => existsSync(join(fixtures, name, "expected.safetensors")))
  .map((name) => ({ name, family: modelType(join(fixtures, name)) }));

describe.runIf(folders.length > 0)(
  "logits, hidden states and greedy continuations of transformers 5.23",
  () => {
    for (const { name, family } of folders) {
      if (!supportedModelTypes.includes(family)) {
        it(`${name} is of a supported family`, () => expect(supportedModelTypes).toContain(family));
        continue;
      }
      describe.each(testedEngines)(`${name} on %s`, (backend) => {
        const folder = join(fixtures, name);
        let model: CheckpointLM;
        beforeEach(async () => void (await useBackend({ backend })));
        afterEach(() => model.dispose());

        it.each(["config.json", "config.v4.json"])("logits with %s", async (configFile) => {
          model = await loadCausalLM(folder, { configFile });
          await withExpected(folder, async (expected) => {
            for (let sequence = 0; sequence < 4; sequence++) {
              const ids = (await expected.read(`seq${sequence}.ids`)) as Int32Array;
              const positions = (await expected.read(`seq${sequence}.positions`)) as Int32Array;
              const reference = await expected.read(`seq${sequence}.logits`);
              const rows = logitsOf(model, ids, positions);
              expect(largestDifference(rows.all, reference)).toBeLessThan(tolerance);
              expect(largestDifference(rows.asked, reference)).toBeLessThan(tolerance);
            }
          });
        });

        it("hidden states and the greedy continuation", async () => {
          model = await loadCausalLM(folder);
          await withExpected(folder, async (expected) => {
            const ids = (await expected.read("seq1.ids")) as Int32Array;
            for (const [index, state] of hiddenStates(model, ids).entries()) {
              const reference = await expected.read(`seq1.hidden.${index}`);
              expect(largestDifference(state, reference), `hidden state ${index}`).toBeLessThan(tolerance);
            }
            const { greedy } = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"));
            expect(greedyContinuation(model, [...ids], greedy.new_ids.length)).toEqual(greedy.new_ids);
          });
        });
      });
    }
  },
);

async function withExpected(folder: string, check: (file: SafetensorsFile) => Promise<void>): Promise<void> {
  const expected = await openSafetensors(join(folder, "expected.safetensors"));
  await check(expected).finally(() => expected.close());
}

/** Logits at some positions of one sequence, by the head on all positions and on those alone. */
function logitsOf(model: CheckpointLM, ids: Int32Array, positions: Int32Array) {
  return tf.tidy(() => {
    const input = tf.tensor2d(ids, [1, ids.length], "int32");
    const all = tf.reshape(model.logits(input), [ids.length, model.vocabSize]);
    const picked = tf.gatherND(all, tf.tensor2d(positions, [positions.length, 1], "int32"));
    const asked = model.logitsAt(input, tf.tensor1d(positions, "int32"));
    return { all: picked.dataSync() as Float32Array, asked: asked.dataSync() as Float32Array };
  });
}

function hiddenStates(model: CheckpointLM, ids: Int32Array): Float32Array[] {
  return tf.tidy(() =>
    model
      .hiddenStates(tf.tensor2d(ids, [1, ids.length], "int32"))
      .map((state) => state.dataSync() as Float32Array),
  );
}

function greedyContinuation(model: CheckpointLM, ids: number[], count: number): number[] {
  const all = [...ids];
  for (let i = 0; i < count; i++) {
    const row = tf.tidy(() => {
      const input = tf.tensor2d(all, [1, all.length], "int32");
      return model.logitsAt(input, tf.tensor1d([all.length - 1], "int32")).dataSync() as Float32Array;
    });
    all.push(row.indexOf(Math.max(...row)));
  }
  return all.slice(ids.length);
}

function largestDifference(a: ArrayLike<number | bigint>, b: ArrayLike<number | bigint>): number {
  expect(a.length).toBe(b.length);
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const difference = Math.abs(Number(a[i]) - Number(b[i]));
    if (Number.isNaN(difference)) return NaN;
    largest = Math.max(largest, difference);
  }
  return largest;
}

function modelType(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as { model_type: string }).model_type;
}
