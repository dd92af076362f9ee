import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { namedStream } from "@periodic-eval/core/random";
import { readRun } from "@periodic-eval/store";
import { afterAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { python, pythonHas } from "../../../models/src/testing/python.test-data.ts";
import { microWorld } from "../demo/micro-world.ts";
import { watchArgs } from "../commands/watch/written-checkpoints.test-data.ts";
import { builtMain } from "../terminal/built-main.test-data.ts";

const canRun = pythonHas("trl", "peft", "datasets");
if (!canRun)
  console.warn("trl.slow.test.ts is skipped: PERIODIC_EVAL_PEERS_PYTHON has no trl, peft and datasets");

// Vitest runs no afterAll in a file that is skipped whole.
const root = canRun ? temporaryFolder(afterAll) : "";
const script = fileURLToPath(new URL("trl-training.test-data.py", import.meta.url));
const docs = readFileSync(new URL("../../../../docs/guides/watch.md", import.meta.url), "utf8");
const [, callback] = /```python\n(import json.*?)```/s.exec(docs)!;
const dueSteps = [8, 16, 24, 32, 40];

/** Trains in another process; rejects with its errors. */
async function train(work: object): Promise<void> {
  const child = spawn(python, [script], {
    env: { ...process.env, HF_HUB_OFFLINE: "1", OMP_NUM_THREADS: "1" },
    stdio: ["pipe", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (text) => (errors += String(text)));
  child.stdin.end(JSON.stringify({ ...work, callback }));
  const [code] = (await once(child, "close")) as [number];
  if (code !== 0) throw new Error(errors);
}

/** Runs `watch` to its end, or kills it some milliseconds after its start. Returns whether it was killed. */
async function watch(checkpoints: string, runDir: string, killAfter?: number): Promise<boolean> {
  const child = spawn(
    process.execPath,
    [
      builtMain(),
      ...watchArgs(
        checkpoints,
        { config: join(root, "block.yaml"), runDir },
        "--backend",
        "wasm",
        "--follow",
      ),
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let errors = "";
  child.stderr.on("data", (text) => (errors += String(text)));
  const timer = killAfter === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfter);
  const [code, signal] = (await once(child, "close")) as [number | null, string | null];
  clearTimeout(timer);
  if (signal === null && code !== 0) throw new Error(errors);
  return signal !== null;
}

/** Returns the snapshots without times, with their rows. */
async function outcome(runDir: string) {
  const { phases, problems } = await readRun(runDir);
  expect(problems).toEqual([]);
  return phases[0]!.snapshots.map(({ created_at: _when, timing: _seconds, sha256: _hash, ...lasting }) => ({
    ...lasting,
    rows: readFileSync(
      join(runDir, "periodic_eval", "train", `${lasting.id}_step_${lasting.step}.samples.jsonl`),
      "utf8",
    ),
  }));
}

it.runIf(canRun).each([
  { name: "LoRA", lora: true, kills: 20 },
  { name: "all weights", lora: false, kills: 5 },
])(
  "measures a training of trl.SFTTrainer while it runs, over $kills kills of the watcher ($name)",
  { timeout: 1_200_000 },
  async ({ name, lora, kills }) => {
    const block = { eval_every_percent: 20, questions: microWorld("questions.jsonl"), subsample_n: 50 };
    await writeFile(
      join(root, "block.yaml"),
      JSON.stringify({ periodic_eval: block, loggers: { jsonl: {} } }),
    );
    const [output, killed, runDir] = [
      join(root, name),
      join(root, `${name}.killed`),
      join(root, `${name}-run`),
    ];
    writeFileSync(killed, "0");
    let failure: unknown = null;
    const training = train({ base: microWorld(), output, killed, kills, lora }).catch((error: unknown) => {
      failure = error;
    });
    const random = namedStream(`trl ${name}`);
    let done = 0;
    // The training cannot end before the last kill, so the watcher cannot either.
    while (done < kills && failure === null) {
      expect(await watch(output, runDir, Math.round(random() * 8000))).toBe(true);
      done += 1;
      writeFileSync(killed, String(done));
    }
    await training;
    expect(failure).toBeNull();
    await watch(output, runDir);

    const beside = await outcome(runDir);
    expect(beside.map(({ step, status, crossed }) => [step, status, crossed])).toEqual([
      [0, "complete", ["start"]],
      ...dueSteps.map((step) => [step, "complete", [`every 20 percent: ${(step * 100) / 40}`]]),
    ]);
    for (const { step, paired } of beside.slice(1))
      expect([step, paired.baseline!["accuracy"]]).toEqual([
        step,
        expect.objectContaining({ step: 0, n_pairs: 50, verdict: expect.any(String) }),
      ]);
    const superseded = join(runDir, "periodic_eval", "superseded");
    expect(existsSync(superseded) ? readdirSync(superseded) : []).toEqual([]);

    const afterwards = join(root, `${name}-afterwards`);
    await watch(output, afterwards);
    expect(await outcome(afterwards)).toEqual(beside);
    const lines = readFileSync(join(afterwards, "log.jsonl"), "utf8").trimEnd().split("\n");
    const losses = lines
      .map((line) => JSON.parse(line) as { kind: string; step: number; metrics: { loss?: number } })
      .filter(({ kind }) => kind === "train");
    expect(losses.map(({ step }) => step)).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
    expect(losses.every(({ metrics }) => metrics.loss! > 0)).toBe(true);
  },
);
