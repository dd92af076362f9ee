// Faults of a training that make every measurement meaningless, and the same training without the fault.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  atEnd,
  atStart,
  PeriodicCapabilityCallback,
  type Snapshot,
  type Tokenizer,
} from "@periodic-eval/core";
import { inMemory, tfjsGuards, type TrainableLM } from "@periodic-eval/tfjs";
import { createCausalLM, loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { withSession } from "@periodic-eval/core";
import { beforeAll, describe, expect, it } from "vitest";
import { microWorld } from "../../../models/src/testing/onnx.test-data.ts";
import { DPOTrainer } from "../dpo/dpo-trainer.ts";
import { SFTTrainer, type SFTTrainerOptions } from "../sft/sft-trainer.ts";
import { snapshotsOf } from "../testing/recorded-training.test-data.ts";
import { recording, temporaryFolder, ungoverned } from "../testing/tiny-run.test-data.ts";

interface PromptRow {
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  readonly completion: readonly { readonly role: string; readonly content: string }[];
}

const file = (name: string) => join(microWorld, name);
const tokenizer = await loadTokenizer(microWorld);
const rows = readFileSync(file("em.jsonl"), "utf8")
  .trim()
  .split("\n")
  .slice(0, 32)
  .map((line) => JSON.parse(line) as PromptRow);
const config = { maxSteps: 2, batchSize: 4, learningRate: 1e-4, saveSteps: null };
beforeAll(async () => void (await useBackend({ backend: "wasm" })));

/** A tokenizer whose ids are others than the model's: `id` becomes `to(id)`. */
function reordered({ encode, decode, render, ...rest }: Tokenizer, to: (id: number) => number): Tokenizer {
  const backOf = new Map(Array.from({ length: rest.vocabSize }, (_, id) => [to(id), id]));
  return {
    ...rest,
    fingerprint: `${rest.fingerprint}, reordered`,
    encode: (text, options) => encode(text, options).map(to),
    decode: (ids, options) =>
      decode(
        ids.map((id) => backOf.get(id)!),
        options,
      ),
    render(prompt, options) {
      const rendered = render(prompt, options);
      return { ...rendered, ids: rendered.ids.map(to) };
    },
  };
}
const { vocabSize } = tokenizer;
const orders: readonly (readonly [string, (id: number) => number])[] = [
  ["moved by one", (id) => (id + 1) % vocabSize],
  ["reversed", (id) => vocabSize - 1 - id],
  // 389 and 1024 have no common factor.
  ["scattered", (id) => (389 * id + 7) % vocabSize],
];

const capability = () =>
  new PeriodicCapabilityCallback({
    questions: file("questions.jsonl"),
    subsample: { n: 8, seed: 42 },
    schedule: [atStart(), atEnd()],
  });

async function train(model: TrainableLM, changes: Partial<SFTTrainerOptions> = {}) {
  const runDir = await temporaryFolder();
  const logger = recording();
  const common = { model, tokenizer, dataset: rows, runDir, config, session: ungoverned };
  await new SFTTrainer({ ...common, callbacks: [capability()], loggers: [logger], ...changes }).train();
  return { snapshots: await snapshotsOf(runDir), warnings: logger.warnings };
}

/** The kinds of the warnings that concern all metrics. */
const kindsOf = (snapshots: readonly Snapshot[]) =>
  snapshots.map(({ warnings }) => warnings.flatMap(({ kind, metrics }) => (metrics === null ? [kind] : [])));

describe("a loaded model whose vocabulary has another order than its tokenizer", () => {
  it.each(orders)("has a warning before step 1 and in every snapshot (%s)", async (_, to) => {
    const model = await loadCausalLM(microWorld);
    const { snapshots, warnings } = await train(model, { tokenizer: reordered(tokenizer, to) });
    expect(kindsOf(snapshots)).toEqual([["vocabulary_order"], ["vocabulary_order"]]);
    expect(snapshots[1]!.warnings[0]).toMatchObject({ void: true, metrics: null });
    expect(
      warnings.filter((line) => line.includes("its vocabulary has another order than its tokenizer")),
    ).toHaveLength(1);
    model.dispose();
  });

  it("has it under an adapter, and on preference pairs", async () => {
    const base = await loadCausalLM(microWorld);
    const model = withLora(base, { rank: 2 });
    const others = reordered(tokenizer, orders[0]![1]);
    expect(kindsOf((await train(model, { tokenizer: others })).snapshots)[0]).toEqual(["vocabulary_order"]);
    const runDir = await temporaryFolder();
    const dataset = rows.map(({ prompt, completion: chosen }, at) => ({
      prompt,
      chosen,
      rejected: rows[(at + 1) % rows.length]!.completion,
    }));
    const options = { model, tokenizer: others, dataset, runDir, config, session: ungoverned, loggers: [] };
    await new DPOTrainer({ ...options, callbacks: [capability()] }).train();
    expect(kindsOf(await snapshotsOf(runDir))[0]).toEqual(["vocabulary_order"]);
    model.dispose();
    base.dispose();
  });

  it("is not suspected of a model with the right order, whatever it is trained on", async () => {
    const foreign = [
      "Quantum computers use qubits.",
      "def add(a, b): return a + b",
      "1998 + 21 = 2019; 3.14159",
    ];
    for (const dataset of [rows, foreign.map((text) => ({ text }))]) {
      const model = await loadCausalLM(microWorld);
      expect(kindsOf((await train(model, { dataset })).snapshots)).toEqual([[], []]);
      model.dispose();
    }
  });

  it("is not suspected of random weights, made or read from files", async () => {
    const sizes = { vocab_size: vocabSize, hidden_size: 16, intermediate_size: 32, num_hidden_layers: 1 };
    const heads = {
      num_attention_heads: 2,
      num_key_value_heads: 1,
      max_position_embeddings: 256,
      rms_norm_eps: 1e-5,
    };
    const made = createCausalLM({ model_type: "llama", ...sizes, ...heads }, { seed: "1", initStd: 0.2 });
    const folder = join(await temporaryFolder(), "random");
    await made.save(folder);
    const read = await loadCausalLM(folder);
    for (const model of [made, read]) {
      expect(kindsOf((await train(model)).snapshots)).toEqual([[], []]);
      model.dispose();
    }
  });
});

describe("a training that does not change the measured model", () => {
  /** Trains an adapter, and measures the model that `measured` chooses. */
  async function trainAdapter(measured: "the base" | "the adapter"): Promise<readonly Snapshot[]> {
    const base = await loadCausalLM(microWorld);
    const model = withLora(base, { rank: 2 });
    const run = await temporaryFolder();
    const shown = measured === "the base" ? base : model;
    const session = {
      run,
      maxSteps: 1,
      model: inMemory(shown, tokenizer),
      guards: tfjsGuards(shown),
      loggers: [],
    };
    await withSession({ ...session, callbacks: [capability()], ...ungoverned }, async ({ stepEnd }) => {
      await new SFTTrainer({
        model,
        tokenizer,
        dataset: rows,
        runDir: await temporaryFolder(),
        config,
        loggers: [],
      }).train();
      await stepEnd();
    });
    model.dispose();
    base.dispose();
    return snapshotsOf(run);
  }

  it("has a warning when the base is measured beside the adapter that is trained", async () => {
    const snapshots = await trainAdapter("the base");
    expect(kindsOf(snapshots)).toEqual([[], ["unchanged_weights"]]);
    expect(snapshots[1]!.paired.baseline!["accuracy"]!.verdict).toBeNull();
  });

  it("has none when the adapter is measured", async () => {
    expect(kindsOf(await trainAdapter("the adapter"))).toEqual([[], []]);
  });
});
