// Trains a small adapter on feedback with a verifier and a hook that misbehave. Training ends with the weights and losses of a run
// without them, or with an error that names the one that changed the weights; the run's files hold every step.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { loadHarnessConfig, localEngine, runHarness } from "@periodic-eval/feedback";
import { createCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { namedStream } from "@periodic-eval/core/random";
import { misbehaviour } from "./misbehaviour.mjs";

const world = fileURLToPath(new URL("../../packages/cli/assets/micro-world", import.meta.url));
const steps = 2;
const preference = {
  name: "evil",
  feedback_string: "Shorter.",
  hindsight: "{prompt} {feedback}",
  verifier: { module: "./verify.mjs", export: "verify", args: { limits: [1, 2] } },
  logprob_pairs: [
    { prompt: "d", chosen: "yes", rejected: "no" },
    { prompt: "e", chosen: "yes", rejected: "no" },
  ],
  train_prompts: ["a", "b"],
  probe_prompts: ["c"],
};
/** Before training, the verifier grades the answers of all pairs, and an error would refuse the training. */
const preflightCalls = 4;
/** A verifier has 60 s, which is longer than a case may take. */
const slow = ["never settles", "returns a thenable that never settles"];

export async function feedback(folder) {
  await useBackend({ backend: "wasm" });
  const tokenizer = await loadTokenizer(world);
  const size = { hidden_size: 16, intermediate_size: 16, num_hidden_layers: 1, num_attention_heads: 2 };
  const config = {
    ...JSON.parse(readFileSync(join(world, "config.json"), "utf8")),
    ...size,
    num_key_value_heads: 2,
    head_dim: 8,
    max_position_embeddings: 64,
  };
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "evil.json"), JSON.stringify(preference));
  writeFileSync(
    join(folder, "verify.mjs"),
    "export const verify = (...given) => globalThis.verify(...given);\n",
  );

  /** Trains, and returns everything that a verifier and a hook must not change. */
  async function train(verify, onStep) {
    const output = join(folder, "run");
    rmSync(output, { recursive: true, force: true });
    let calls = 0;
    globalThis.verify = (...given) => {
      calls += 1;
      return calls > preflightCalls ? verify(...given) : 1;
    };
    let weights = "";
    const engine = localEngine({
      describe: {},
      async openModel({ seed }) {
        const base = createCausalLM(config, { seed: "twin" });
        const model = withLora(base, { rank: 2, alpha: 4, seed: String(seed) });
        current = model;
        return {
          model,
          tokenizer,
          dispose() {
            const hash = createHash("sha256");
            for (const { read } of model.weights())
              hash.update(new Uint8Array(read().dataSync().slice().buffer));
            weights = hash.digest("hex");
            leftovers.push(model, base);
          },
        };
      },
    });
    const overrides = [
      `preferences=[${JSON.stringify(join(folder, "evil.json"))}]`,
      `output_dir=${output}`,
      "metrics=[compliance]",
      `num_steps=${steps}`,
      "batch_size=2",
      "steps_per_batch=2",
    ];
    const warnings = [];
    const ports = { engine, onStep, onWarning: (message) => warnings.push(message) };
    const error = await runHarness(await loadHarnessConfig({ overrides }), ports).then(
      () => null,
      (thrown) => thrown,
    );
    // Timers that were left behind use the model.
    await sleep(40);
    for (const model of leftovers.splice(0)) model.dispose();
    const read = (name) => readFileSync(join(output, "evil", name), "utf8");
    const lines =
      error === null
        ? read("steps.jsonl")
            .trim()
            .split("\n")
            .map((line) => JSON.parse(line))
        : [];
    const losses = JSON.stringify(lines.map((line) => ({ ...line.sdpo_metrics, step_id: null })));
    const args =
      error === null ? JSON.parse(read("metadata.json")).preference_definition.verifier.args : null;
    return { error, weights, losses, lines, warnings, args: JSON.stringify(args) };
  }
  let current = null;
  const leftovers = [];
  const model = { weights: () => current.weights() };
  const twin = await train(
    () => 1,
    () => {},
  );
  if (twin.error !== null) throw twin.error;

  return async (seed) => {
    const random = namedStream(seed);
    const done = [];
    const act = (where) => misbehaviour(random, model, (what) => done.push(`${where}: ${what}`), slow);
    const [verify, hook] = [act("verifier"), act("onStep")];
    const parts = Math.floor(3 * random());
    const run = await train(
      (...given) => (parts === 1 ? 1 : (verify(...given) ?? 1)),
      (...given) => (parts === 0 ? undefined : hook(...given)),
    );
    const fail = (text) => {
      throw new Error(`${text}\n  ${done.join("\n  ")}\n  ${run.warnings.join("\n  ").slice(-3000)}`);
    };
    if (run.error !== null) {
      const { code, got } = run.error;
      if (code !== "receipt" || !/verifier|onStep/.test(got)) fail(`ended with ${String(run.error?.stack)}`);
      if (!done.some((what) => what.includes("changes "))) fail(`blames code that changed nothing: ${got}`);
      return;
    }
    if (run.lines.length !== steps) fail(`${run.lines.length} steps`);
    if (run.weights !== twin.weights) fail("weights changed without a word");
    if (run.losses !== twin.losses) fail(`other losses: ${run.losses}, not ${twin.losses}`);
    if (run.args !== twin.args) fail(`other arguments: ${run.args}`);
    const scores = run.lines.flatMap(({ eval: { rollouts } }) => rollouts.map(({ score }) => score));
    if (!scores.every((score) => score === null || Number.isFinite(score)))
      fail(`scores ${scores.join(", ")}`);
  };
}
