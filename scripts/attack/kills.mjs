// Kills `periodic-eval train FILE` at random moments, with SIGKILL or a signal that asks it to end, and resumes. The final weights,
// the optimizer's state and the measurements must equal those of a run that was not killed, and no leftover of a write may stay.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { namedStream } from "@periodic-eval/core/random";
import { readRun } from "@periodic-eval/store";
import { memoryOf } from "./memory.mjs";

const main = fileURLToPath(new URL("../../packages/cli/dist/main.js", import.meta.url));
const world = fileURLToPath(new URL("../../packages/cli/assets/micro-world", import.meta.url));
const exitCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGUSR1: 138 };
const signals = ["SIGKILL", "SIGKILL", "SIGKILL", ...Object.keys(exitCodes)];
/** Leftovers of writes: drafts and temporary files. */
const leftover = /(^|\/)\.[^/]+\.(draft|old|removed|tmp)(\/|$)/;

let peak = 0;

/** Trains, or is killed after some milliseconds. Returns the exit code, the signal that ended it and what it printed. */
function train(config, runDir, killAfter, signal) {
  const child = spawn(process.execPath, [main, "train", config, `run_dir=${runDir}`], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (text += piece));
  const watch = setInterval(() => (peak = Math.max(peak, memoryOf(child.pid))), 100);
  const timer = killAfter === undefined ? undefined : setTimeout(() => child.kill(signal), killAfter);
  // A run takes seconds.
  const deadline = setTimeout(() => child.kill("SIGKILL"), 180_000);
  return new Promise((resolve) =>
    child.on("close", (code, endedBy) => {
      for (const one of [watch, timer, deadline]) clearTimeout(one);
      resolve({ code, endedBy, text });
    }),
  );
}

/** Returns everything in a run that must not depend on kills. */
async function outcome(runDir) {
  const { phases, problems } = await readRun(runDir);
  if (problems.length > 0) throw new Error(`problems: ${JSON.stringify(problems)}`);
  const snapshots = phases.map(({ name, snapshots: all }) => [
    name,
    all.map(({ created_at: _when, timing: _seconds, sha256: _ofBoth, ...lasting }) => lasting),
  ]);
  const checkpoints = join(runDir, "checkpoints");
  const hashes = readdirSync(checkpoints, { recursive: true })
    .filter((name) => name.endsWith(".safetensors"))
    .toSorted()
    .map((name) => [
      name,
      createHash("sha256")
        .update(readFileSync(join(checkpoints, name)))
        .digest("hex"),
    ]);
  const left = readdirSync(runDir, { recursive: true }).filter((name) => leftover.test(name));
  if (left.length > 0) throw new Error(`leftovers: ${left.join(", ")}`);
  return JSON.stringify({ snapshots, hashes });
}

function expectEqual(found, whole) {
  if (found === whole) return;
  let at = 0;
  while (found[at] === whole[at]) at += 1;
  const part = (text) => text.slice(Math.max(0, at - 80), at + 80);
  throw new Error(`got …${part(found)}…, expected …${part(whole)}…`);
}

export const kills = {
  async prepare(folder) {
    mkdirSync(folder, { recursive: true });
    for (const name of ["coupling", "em"]) {
      const rows = readFileSync(join(world, `${name}.jsonl`), "utf8").split("\n");
      writeFileSync(join(folder, `${name}.jsonl`), rows.slice(0, 8).join("\n"));
    }
    const config = join(folder, "train.yaml");
    writeFileSync(
      config,
      `model: ${world}
backend: wasm
lora: { rank: 2 }
config: { maxSteps: 6, batchSize: 2, learningRate: 0.01, saveSteps: 1, validationShare: 0.25, evalSteps: 2 }
periodic_eval:
  questions: ${join(world, "questions.jsonl")}
  subsample_n: 8
  eval_every_percent: 34
  budget: { overhead_percent: null }
phases:
  - { phase: coupling, dataset: coupling.jsonl }
  - { phase: em, dataset: em.jsonl, config: { schedule: wsd, decaySteps: 2 } }
`,
    );
    const started = performance.now();
    const first = await train(config, join(folder, "whole"));
    if (first.code !== 0) throw new Error(`the run that is not killed failed: ${first.text}`);
    const milliseconds = performance.now() - started;
    const whole = await outcome(join(folder, "whole"));
    return {
      async attack(seed) {
        const random = namedStream(seed);
        const runDir = join(folder, "killed");
        rmSync(runDir, { recursive: true, force: true });
        const moments = [];
        for (let left = 1 + Math.floor(3 * random()); left > 0; left -= 1) {
          const signal = signals[Math.floor(signals.length * random())];
          const after = Math.round(random() * milliseconds);
          moments.push(`${signal} after ${after} ms`);
          const { code, endedBy, text } = await train(config, runDir, after, signal);
          // Before the handler is installed, the system ends the process; the run may also have ended first.
          if (code !== 0 && code !== exitCodes[signal] && endedBy !== signal)
            throw new Error(`${moments.join(", ")}: exit code ${code}, signal ${endedBy}: ${text}`);
        }
        const { code, endedBy, text } = await train(config, runDir);
        if (code !== 0)
          throw new Error(`${moments.join(", ")}: resume ended with ${code ?? endedBy}: ${text}`);
        try {
          expectEqual(await outcome(runDir), whole);
        } catch (error) {
          throw new Error(`${moments.join(", ")}: ${error.message}`, { cause: error });
        }
      },
      peakBytes: () => peak,
      close: async () => undefined,
    };
  },
};
