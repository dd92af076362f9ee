// Trains a small model for a few steps with hooks and evaluations that misbehave. Training continues and ends; weights that
// differ from those of a run without them are reported with the callback's name; every crossed threshold has a snapshot; honest
// measurements have the numbers of the other run.
import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  defineEvaluation,
  everyPercent,
  PeriodicCallback,
  PeriodicCapabilityCallback,
} from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { readRun } from "@periodic-eval/core/snapshots";
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";
import { misbehaviour } from "./misbehaviour.mjs";

const world = fileURLToPath(new URL("../../packages/cli/assets/micro-world", import.meta.url));
const hooks = ["onTrainBegin", "onEpochBegin", "onEpochEnd", "onStepBegin", "onStepEnd", "onLog", "onSave"];
const otherHooks = ["onTrainEnd", "onSnapshot", "onError", "state", "close"];
/** Stages of an evaluation. An error in `items` or `check` refuses the training, so that these only leave things behind. */
const stages = ["measure", "grade", "metrics", "provenance", "plainKeys", "failure", "close"];
const steps = 4;
const due = [0, 2, 4];
/** Small, so that a case takes little time. */
const size = {
  hidden_size: 16,
  intermediate_size: 16,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  head_dim: 8,
};

export async function callbacks(folder) {
  await useBackend({ backend: "wasm" });
  const tokenizer = await loadTokenizer(world);
  const config = {
    ...JSON.parse(readFileSync(join(world, "config.json"), "utf8")),
    ...size,
    num_key_value_heads: 2,
  };
  const rows = readFileSync(join(world, "em.jsonl"), "utf8")
    .split("\n")
    .slice(0, 8)
    .map((line) => JSON.parse(line));
  const honest = () =>
    new PeriodicCapabilityCallback({
      questions: join(world, "questions.jsonl"),
      subsample: { n: 4, seed: 42 },
      schedule: [everyPercent(50)],
    });

  /** Trains with callbacks in addition to the honest one. Returns everything that they must not change. */
  async function train(others) {
    const runDir = join(folder, "run");
    rmSync(runDir, { recursive: true, force: true });
    const model = createCausalLM(config, { seed: "twin" });
    const lines = [];
    const logger = { name: "lines", event: (event) => void lines.push(JSON.stringify(event)) };
    const trainer = new SFTTrainer({
      model,
      tokenizer,
      dataset: rows,
      runDir,
      config: { maxSteps: steps, batchSize: 2, learningRate: 0.01, saveSteps: 2 },
      callbacks: [honest(), ...others(model)],
      loggers: [logger],
      session: { budget: { overheadPercent: null, drainSeconds: 1 }, patienceSeconds: 1 },
    });
    try {
      const result = await trainer.train();
      const hash = createHash("sha256");
      for (const { read } of model.weights()) hash.update(new Uint8Array(read().dataSync().slice().buffer));
      const { phases, problems } = await readRun(runDir);
      if (problems.length > 0) throw new Error(`problems: ${JSON.stringify(problems)}`);
      const snapshots = phases.flatMap(({ snapshots: all }) => all);
      return { result, weights: hash.digest("hex"), snapshots, lines: lines.join("\n") };
    } finally {
      // Timers that callbacks left behind use the model.
      await sleep(40);
      model.dispose();
    }
  }
  const numbersOf = ({ snapshots }) =>
    JSON.stringify(
      snapshots
        .filter(({ id }) => id === "capability")
        .map(({ step, status, metrics }) => [step, status, metrics]),
    );
  const reasonsOf = ({ snapshots }) =>
    JSON.stringify(snapshots.map(({ id, step, status, reason }) => [id, step, status, reason]));
  const twin = await train(() => []);

  return async (seed) => {
    const random = namedStream(seed);
    const pick = (list) => list[Math.floor(list.length * random())];
    const done = [];
    const act = (model, where) => misbehaviour(random, model, (what) => done.push(`${where}: ${what}`));
    const evil = (model) => {
      const hook = Object.fromEntries(
        Array.from({ length: 1 + Math.floor(4 * random()) }, () => pick([...hooks, ...otherHooks])).map(
          (name) => [name, act(model, `hook ${name}`)],
        ),
      );
      return [
        { id: "evil-hook", ...hook },
        new PeriodicCallback(
          evilEvaluation(pick, (name) => act(model, name)),
          {
            id: "evil-evaluation",
            schedule: [everyPercent(50)],
          },
        ),
      ].slice(0, pick([1, 2, 2]));
    };
    let ids = [];
    const run = await train((model) => {
      const all = evil(model);
      ids = ["capability", ...all.slice(1).map(({ id }) => id)];
      return all;
    });
    const fail = (text) => {
      throw new Error(`${text}\n  ${done.join("\n  ")}\n  ${run.lines.slice(-3000)}`);
    };
    const { result, snapshots, lines } = run;
    const isChanged = run.weights !== twin.weights;
    // Also if a timer runs in the window of the honest callback.
    const name = /"evil-/;
    if (result.stopReason === null ? result.steps !== steps : !name.test(result.stopReason))
      fail(`training ended at step ${result.steps}: ${result.stopReason}`);
    const receipts = JSON.stringify(
      snapshots.flatMap(({ id, receipt }) =>
        receipt.filter(({ intact }) => intact !== true).map((one) => [id, one]),
      ),
    );
    if (isChanged && !name.test(`${result.stopReason}${lines}${receipts}`.replaceAll("\\", "")))
      fail("weights changed without a word");
    if (isChanged || result.stopReason !== null) return;
    if (numbersOf(run) !== numbersOf(twin)) fail(`honest measurements differ: ${reasonsOf(run)}`);
    for (const id of ids)
      for (const step of due) {
        const found = snapshots.find((one) => one.id === id && one.step === step);
        // A grader that does not settle is waited for until the end, and a warning says that a resume continues it.
        const isLate = found?.status === "grading" && lines.includes(`${id}/${step}`);
        // An empty list of rows, which the snapshot states.
        const isShort = found?.status === "partial" && done.some((what) => what.startsWith("measure: "));
        if (found?.status !== "complete" && found?.status !== "failed" && !isLate && !isShort)
          fail(`${id} at step ${step} is ${found?.status}: ${found?.reason}`);
      }
  };
}

/** Returns an evaluation of which some stages misbehave. */
function evilEvaluation(pick, act) {
  const bad = Object.fromEntries(
    Array.from({ length: pick([0, 1, 2]) }, () => pick(stages)).map((name) => [name, act(name)]),
  );
  const plain = {
    name: "evil",
    version: "1",
    needs: ["logLikelihoods"],
    items: () => Array.from({ length: 3 }, (_, at) => ({ id: `q${at}`, text: `question ${at}` })),
    provenance: () => ({ items: 3 }),
    async measure(model, items, { signal }) {
      const scores = await model.logLikelihoods(
        items.map(({ text }) => ({ context: { text }, continuation: " yes" })),
        { signal },
      );
      return items.map(({ id }, at) => ({ id, nats: scores[at].sumNats, isHit: null }));
    },
    grade: async (rows) => rows.map((row) => ({ ...row, isHit: row.nats < 0 })),
    metrics: ({ rate }) => ({ hit_rate: rate(({ isHit }) => isHit) }),
    failure: () => null,
    plainKeys: () => ({}),
    close: async () => undefined,
  };
  const both = Object.entries(bad).map(([name, misbehave]) => [
    name,
    (...given) => {
      const answer = misbehave(...given);
      return answer === undefined ? plain[name](...given) : answer;
    },
  ]);
  return defineEvaluation({ ...plain, ...Object.fromEntries(both) });
}
