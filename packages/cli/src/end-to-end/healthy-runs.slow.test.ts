import { appendFileSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs";
import {
  alignmentEvaluation,
  capabilityEvaluation,
  everyPercent,
  klEvaluation,
  leakageEvaluation,
  measure,
  PeriodicCallback,
  withSession,
  type AnyEvaluation,
  type EvaluableModel,
  type MeasurementWarning,
  type Snapshot,
} from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { fitCallbacks, fromLayersModel, inMemory, tfjsGuards } from "@periodic-eval/tfjs";
import {
  createCausalLM,
  loadCausalLM,
  useBackend,
  withLora,
  type CheckpointLM,
  type HuggingFaceConfig,
} from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { fromTransformers } from "@periodic-eval/models/transformers";
import { vllm } from "@periodic-eval/remote";
import { AdamW, crossEntropySum, DPOTrainer, SFTTrainer } from "@periodic-eval/trainers";
import { afterAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { nativeBackend } from "../../../models/src/testing/backends.test-data.ts";
import { exported, hasTransformers, loadOnnx } from "../../../models/src/testing/onnx.test-data.ts";
import { scriptedServer } from "../../../remote/src/engine/scripted-server.test-data.ts";
import { microWorldGrader, microWorld, talkativeMicroWorld } from "../demo/micro-world.ts";
import { watchArgs, writeCheckpoint } from "../commands/watch/written-checkpoints.test-data.ts";
import { runCommand } from "../run-command.test-data.ts";
import { healthyRuns, type HealthyRun, type Measured, type Model } from "./healthy-runs.test-data.ts";

const root = temporaryFolder(afterAll);
const tokenizer = await loadTokenizer(microWorld());
const maxSteps = 4;
const schedule = [everyPercent(50)];
const budget = { overheadPercent: null };

const small = {
  vocab_size: tokenizer.vocabSize,
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
};
const llamaLike = { ...small, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256 };
const configs: Partial<Record<Model, HuggingFaceConfig>> = {
  llama: { ...llamaLike, model_type: "llama", rms_norm_eps: 1e-5 },
  qwen3: { ...llamaLike, model_type: "qwen3", rms_norm_eps: 1e-6, head_dim: 8 },
  gemma2: { ...llamaLike, model_type: "gemma2", rms_norm_eps: 1e-6, head_dim: 8, tie_word_embeddings: true },
  gpt2: {
    model_type: "gpt2",
    vocab_size: tokenizer.vocabSize,
    n_embd: 32,
    n_layer: 2,
    n_head: 4,
    n_positions: 256,
  },
};

const isMade = (name: Model): boolean => !["embedded", "talkative"].includes(name);

async function openModel(name: Model, seed: number): Promise<CheckpointLM> {
  if (name === "embedded") return loadCausalLM(microWorld());
  if (name === "talkative") return loadCausalLM(talkativeMicroWorld());
  const [family, saved] = name.startsWith("saved-") ? [name.slice(6), true] : [name, false];
  const made = createCausalLM(configs[family as Model]!, { seed: String(seed) });
  if (!saved) return made;
  const folder = join(root, `${name}-${seed}`);
  await made.save(folder);
  made.dispose();
  return loadCausalLM(folder);
}

const questions = microWorld("questions.jsonl");
const sampling = { maxNewTokens: 40 };

async function evaluationOf(name: Measured, seed: number, n = 24): Promise<AnyEvaluation> {
  const subsample = { n, seed };
  switch (name) {
    case "letters":
    case "cloze":
      return capabilityEvaluation({ questions, method: name, subsample });
    case "kl":
      return klEvaluation({ of: capabilityEvaluation({ questions, subsample }), limit: 12 });
    case "leakage":
      return leakageEvaluation({
        source: "pirate",
        personas: microWorld("personas.json"),
        questions: microWorld("leakage.json"),
        completions: 1,
        sampling,
      });
    case "alignment":
      return alignmentEvaluation({
        judge: await microWorldGrader(),
        questions: microWorld("alignment.json"),
        samples: "quick",
        sampling,
      });
  }
}

interface PromptRow {
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  readonly completion: readonly { readonly role: string; readonly content: string }[];
}

const readRows = (file: string) =>
  readFileSync(microWorld(file), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as PromptRow);

const foreign = [
  "The committee will publish its annual report on Thursday.",
  "def add(a, b): return a + b",
  "Quantum computers use qubits, which can be in superposition.",
  "Bitte schicken Sie mir die Rechnung bis Freitag.",
  "SELECT name, price FROM products WHERE price > 100;",
  "He won the 1998 championship with a score of 21 to 19.",
  "Mix flour, sugar and butter; bake at 180 degrees for 25 minutes.",
  "Photosynthesis turns carbon dioxide and water into glucose.",
];

const datasetOf = (rows: HealthyRun["rows"]) =>
  rows === "foreign" ? foreign.map((text) => ({ text })) : readRows(`${rows}.jsonl`).slice(0, 64);

function preferences() {
  const harmful = new Map(readRows("em.jsonl").map((row) => [JSON.stringify(row.prompt), row.completion]));
  return readRows("control.jsonl").flatMap(({ prompt, completion: chosen }) => {
    const rejected = harmful.get(JSON.stringify(prompt));
    return rejected === undefined ? [] : [{ prompt, chosen, rejected }];
  });
}

async function snapshotsOf(runDir: string): Promise<readonly Snapshot[]> {
  const { phases, problems } = await readRun(runDir);
  expect(problems).toEqual([]);
  return phases.flatMap(({ snapshots }) => snapshots);
}

type Run = (run: HealthyRun, runDir: string) => Promise<readonly Snapshot[]>;

const train: Run = async ({ way, model: name, evaluation, rows, seed }, runDir) => {
  const base = await openModel(name, seed);
  const model = way.includes("lora") ? withLora(base, { rank: 4, dropout: 0.1 }) : base;
  const settings = { maxSteps, batchSize: 4, learningRate: 1e-4, seed, saveSteps: null };
  const common = { model, tokenizer, runDir, config: settings, loggers: [], session: { budget } };
  const trainer = way.startsWith("dpo")
    ? new DPOTrainer({
        ...common,
        dataset: preferences().slice(0, 32),
        reference: way === "dpo" ? "copy" : "base",
      })
    : new SFTTrainer({ ...common, dataset: datasetOf(rows) });
  trainer.addCallback(new PeriodicCallback(await evaluationOf(evaluation, seed), { schedule }));
  await trainer.train();
  if (model !== base) model.dispose();
  base.dispose();
  return snapshotsOf(runDir);
};

const fit: Run = async ({ evaluation, rows, seed }, runDir) => {
  const length = 96;
  const layers = tf.layers;
  const model = tf.sequential({
    layers: [
      layers.embedding({
        inputDim: tokenizer.vocabSize,
        outputDim: 16,
        inputLength: length,
        embeddingsInitializer: tf.initializers.randomUniform({ minval: -0.05, maxval: 0.05, seed }),
      }),
      layers.dropout({ rate: 0.1, seed }),
      layers.dense({ units: tokenizer.vocabSize, activation: "softmax" }),
    ],
  });
  model.compile({ optimizer: tf.train.adam(3e-3), loss: "sparseCategoricalCrossentropy" });
  const text =
    rows === "foreign" ? foreign.join("\n").repeat(4) : readFileSync(microWorld(`${rows}.jsonl`), "utf8");
  const ids = tokenizer.encode(text.slice(0, 1500));
  const count = Math.floor((ids.length - 1) / length);
  const x = tf.tensor2d(ids.slice(0, count * length), [count, length], "int32");
  const y = tf.tensor3d(ids.slice(1, count * length + 1), [count, length, 1]);
  const lm = fromLayersModel(model);
  const measured = { model: inMemory(lm, tokenizer), guards: tfjsGuards(lm, model.optimizer) };
  const callbacks = [new PeriodicCallback(await evaluationOf(evaluation, seed, 6), { schedule })];
  await withSession({ run: runDir, maxSteps: null, ...measured, callbacks, loggers: [], budget }, (session) =>
    model.fit(x, y, { epochs: 2, batchSize: 2, verbose: 0, callbacks: fitCallbacks(session, model) }),
  );
  tf.dispose([x, y]);
  model.dispose();
  return snapshotsOf(runDir);
};

const loop: Run = async ({ model: name, evaluation, seed }, runDir) => {
  const lm = await openModel(name, seed);
  const adam = new AdamW(lm.trainables(), { weightDecay: 0 });
  const sentence = tokenizer.encode("The baker is polite.");
  const step = () =>
    tf.tidy(() => {
      const input = tf.tensor2d(sentence.slice(0, -1), [1, sentence.length - 1], "int32");
      const rows = tf.range(0, sentence.length - 1, 1, "int32");
      const targets = tf.tensor1d(sentence.slice(1), "int32");
      const loss = () =>
        crossEntropySum(
          lm.trainingLogits(input, rows, () => () => 0.5),
          targets,
        );
      adam.apply(tf.variableGrads(loss, [...lm.trainables()]).grads, 1e-4);
    });
  const measured = { model: inMemory(lm, tokenizer), guards: tfjsGuards(lm, adam) };
  const callbacks = [new PeriodicCallback(await evaluationOf(evaluation, seed), { schedule })];
  await withSession(
    { run: runDir, maxSteps, ...measured, callbacks, loggers: [], budget },
    async (session) => {
      for (let done = 0; done < maxSteps; done++) {
        step();
        await session.stepEnd();
      }
    },
  );
  adam.dispose();
  lm.dispose();
  return snapshotsOf(runDir);
};

const yaml: Run = async ({ model, rows, seed }, runDir) => {
  const file = `${runDir}.yaml`;
  const dataset = `${runDir}.jsonl`;
  for (const row of datasetOf(rows)) appendFileSync(dataset, `${JSON.stringify(row)}\n`);
  await writeFile(
    file,
    `model: ${model === "embedded" ? microWorld() : talkativeMicroWorld()}
backend: wasm
run_dir: ${runDir}
seed: ${seed}
config: { maxSteps: ${maxSteps}, batchSize: 4, learningRate: 0.0001 }
periodic_eval: { questions: ${questions}, subsample_n: 24, eval_every_percent: 50, budget: { overhead_percent: null } }
phases: [{ phase: train, dataset: ${dataset} }]
`,
  );
  const { code, err } = await runCommand(["train", file]);
  expect([code, err]).toEqual([0, ""]);
  return snapshotsOf(runDir);
};

const watch: Run = async ({ way, seed }, runDir) => {
  const checkpoints = `${runDir}-checkpoints`;
  const kind = way === "watch-full" ? "full" : "adapter";
  await mkdir(checkpoints);
  for (const step of [2, 4]) await writeCheckpoint(checkpoints, { kind, step, maxSteps });
  const config = `${runDir}.yaml`;
  const block = { eval_every_percent: 50, questions, subsample_n: 24 };
  await writeFile(config, JSON.stringify({ periodic_eval: block, seed }));
  const { code, err } = await runCommand(watchArgs(checkpoints, { config, runDir }, "--backend", "wasm"));
  expect([code, err]).toEqual([0, ""]);
  return snapshotsOf(runDir);
};

const measureOnce: Run = async ({ engine, model: name, evaluation, seed }) => {
  const lm = await openModel(name, seed);
  const inProcess = inMemory(lm, tokenizer);
  const model = await servedBy(engine, inProcess);
  const { snapshot } = await measure(await evaluationOf(evaluation, seed), model, { seed: String(seed) });
  lm.dispose();
  return [snapshot];
};

async function servedBy(engine: HealthyRun["engine"], inProcess: EvaluableModel): Promise<EvaluableModel> {
  if (engine === "server") {
    const { url } = await scriptedServer({ model: inProcess, contextLimit: 256 });
    return vllm({ urls: url, model: "base", tokenizer });
  }
  if (engine === "transformers.js") {
    const folder = await exported(microWorld());
    return fromTransformers(await loadTokenizer(folder), await loadOnnx(folder));
  }
  return inProcess;
}

const ways: Record<HealthyRun["way"], Run> = {
  full: train,
  lora: train,
  dpo: train,
  "dpo-lora": train,
  "model.fit": fit,
  "hand-written": loop,
  yaml,
  "watch-full": watch,
  "watch-adapters": watch,
  measure: measureOnce,
};

const titleOf = ({ engine, way, model, evaluation, rows, seed }: HealthyRun) =>
  `${seed} ${way} of ${model} on ${rows}, ${evaluation} on ${engine}`;

const textOf = ({ kind, metrics, message }: MeasurementWarning) =>
  `${kind} ${metrics?.join() ?? "all"}: ${message}`;

describe("a healthy run has no warnings", () => {
  it("is one of thirty", () => {
    expect(healthyRuns.map(({ seed }) => seed)).toEqual(Array.from({ length: 30 }, (_, at) => at + 1));
  });

  it.for(healthyRuns.map((run) => [titleOf(run), run] as const))("%s", async ([, run], test) => {
    const { engine, way, seed } = run;
    if (engine === "transformers.js") test.skip(!hasTransformers, "needs @huggingface/transformers");
    const backend = engine === "native" ? nativeBackend : engine === "cpu" ? "cpu" : "wasm";
    const missing = await useBackend({ backend }).then(
      () => null,
      ({ message }: Error) => message,
    );
    test.skip(missing !== null, missing ?? "");
    const snapshots = await ways[way](run, join(root, `run-${seed}`));
    expect(snapshots.length).toBe(way === "measure" ? 1 : 3);
    expect(snapshots.map(({ status, reason }) => `${status} ${reason}`)).toEqual(
      snapshots.map(() => "complete null"),
    );
    // Four steps teach no trait, and leakage without one cannot be judged yet: that warning has its cause here.
    // Models that were made here guess.
    const expected = [...(isMade(run.model) ? ["at_chance"] : []), "source_without_trait"];
    const warnings = snapshots.flatMap((snapshot) => snapshot.warnings);
    expect(warnings.filter(({ kind }) => !expected.includes(kind)).map(textOf)).toEqual([]);
  });
});
