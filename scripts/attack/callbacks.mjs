// Trains a small model for a few steps with hooks and evaluations that throw, reject or never settle. Training ends with the
// weights of a run without them; every crossed threshold has a snapshot; other measurements have the numbers of that run.
import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  defineEvaluation,
  everyPercent,
  PeriodicCallback,
  PeriodicCapabilityCallback,
} from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { readRun } from "@periodic-eval/store";
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";

const world = fileURLToPath(new URL("../../packages/cli/assets/micro-world", import.meta.url));
const hooks = ["onTrainBegin", "onEpochBegin", "onEpochEnd", "onStepBegin", "onStepEnd", "onLog", "onSave"];
const otherHooks = ["onTrainEnd", "onSnapshot", "onError", "state", "close"];
/** Stages of an evaluation. An error in `items` or `check` refuses the training. */
const stages = ["measure", "grade", "metrics", "provenance", "plainKeys", "failure", "close"];
const fail = () => {
  throw new Error("failed");
};
const ways = {
  throws: fail,
  rejects: async () => fail(),
  "rejects later": async () => new Promise((resolve) => setTimeout(resolve, 5)).then(fail),
  "leaves a rejection": () => void Promise.reject(new Error("left")),
  "never settles": () => new Promise(() => {}),
};
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
  const healthy = () =>
    new PeriodicCapabilityCallback({
      questions: join(world, "questions.jsonl"),
      subsample: { n: 4, seed: 42 },
      schedule: [everyPercent(50)],
    });

  /** Trains with callbacks in addition to one that works. Returns everything that they must not change. */
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
      callbacks: [healthy(), ...others],
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
      model.dispose();
    }
  }
  const numbersOf = ({ snapshots }) =>
    JSON.stringify(
      snapshots
        .filter(({ id }) => id === "capability")
        .map(({ step, status, metrics }) => [step, status, metrics]),
    );
  const twin = await train([]);

  return async (seed) => {
    const random = namedStream(seed);
    const pick = (list) => list[Math.floor(list.length * random())];
    const done = [];
    /** Returns a function that fails in one way, at every call or now and then. It returns undefined to go on as usual. */
    const failing = (where) => {
      const way = pick(Object.keys(ways));
      const share = pick([1, 1, 0.3]);
      return () => {
        if (random() >= share) return undefined;
        done.push(`${where}: ${way}`);
        return ways[way]();
      };
    };
    const some = (names, most) =>
      Object.fromEntries(
        Array.from({ length: Math.floor((most + 1) * random()) }, () => pick(names)).map((name) => [
          name,
          failing(name),
        ]),
      );
    const evaluation = failingEvaluation(some(stages, 2));
    const run = await train([
      { id: "hooks", ...some([...hooks, ...otherHooks], 4) },
      new PeriodicCallback(evaluation, { id: "evaluation", schedule: [everyPercent(50)] }),
    ]);
    const check = (isRight, text) => {
      if (!isRight) throw new Error(`${text}\n  ${done.join("\n  ")}\n  ${run.lines.slice(-3000)}`);
    };
    const { result, snapshots, lines } = run;
    check(result.steps === steps, `training ended at step ${result.steps}: ${result.stopReason}`);
    check(run.weights === twin.weights, "the weights differ");
    check(numbersOf(run) === numbersOf(twin), "other measurements differ");
    for (const id of ["capability", "evaluation"])
      for (const step of due) {
        const found = snapshots.find((one) => one.id === id && one.step === step);
        // A grader that does not settle is waited for until the end, and a warning says that a resume continues it.
        const isLate = found?.status === "grading" && lines.includes(`${id}/${step}`);
        const isMeasured = found?.status === "complete" || found?.status === "failed" || isLate;
        check(isMeasured, `${id} at step ${step} is ${found?.status}: ${found?.reason}`);
      }
  };
}

/** Returns an evaluation of which some stages fail. */
function failingEvaluation(failing) {
  const plain = {
    name: "failing",
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
  const stagesOf = Object.entries(failing).map(([name, fails]) => [
    name,
    (...given) => fails() ?? plain[name](...given),
  ]);
  return defineEvaluation({ ...plain, ...Object.fromEntries(stagesOf) });
}
