import { existsSync, readFileSync, readdirSync } from "node:fs";
import { appendFile, cp, mkdir, open, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { namedStream } from "@periodic-eval/core/random";
import { readRun } from "@periodic-eval/store";
import { useBackend } from "@periodic-eval/models";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runChild } from "../../../../testing/src/killed-child.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { builtMain } from "../../terminal/built-main.test-data.ts";
import { watchArgs, writeCheckpoint } from "./written-checkpoints.test-data.ts";

const kills = 4;
const kinds = ["adapter", "full"] as const;
const root = temporaryFolder(afterAll);
const configOf = (kind: string) => join(root, `${kind}.yaml`);
const steps = [2, 4, 6, 8, 10];

beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  const block = {
    eval_every_percent: 20,
    questions: microWorld("questions.jsonl"),
    subsample_n: 60,
  };
  const loggers = { csv: {} };
  await writeFile(configOf("full"), JSON.stringify({ periodic_eval: block, loggers }));
  // Only an adapter can be switched off.
  const withKl = { ...block, kl: ["capability"] };
  await writeFile(configOf("adapter"), JSON.stringify({ periodic_eval: withKl, loggers }));
});

const watchAll = (config: string, checkpoints: string, runDir: string, killAfter?: number) =>
  runChild(
    builtMain(),
    watchArgs(checkpoints, { config, runDir }, "--backend", "wasm", "--follow"),
    killAfter,
  );

/** Copies checkpoints one after the other as an unlucky trainer would: the state first, then the weights in pieces. */
async function writeSlowly(from: string, to: string): Promise<void> {
  for (const step of steps) {
    const [source, target] = [join(from, `checkpoint-${step}`), join(to, `checkpoint-${step}`)];
    await mkdir(target, { recursive: true });
    const names = await readdir(source);
    const isWeights = (name: string) => name.endsWith(".safetensors");
    for (const name of names.filter((file) => !isWeights(file)))
      await cp(join(source, name), join(target, name));
    for (const name of names.filter(isWeights)) {
      const bytes = await readFile(join(source, name));
      const file = await open(join(target, name), "w");
      await file.close();
      for (let at = 0; at < bytes.length; at += 20_000) {
        await appendFile(join(target, name), bytes.subarray(at, at + 20_000));
        await sleep(20);
      }
    }
  }
}

/** Returns everything that must not depend on kills: snapshots without times, with their rows. */
async function outcome(runDir: string) {
  const { phases, problems } = await readRun(runDir);
  expect(problems).toEqual([]);
  return phases.flatMap(({ snapshots }) =>
    snapshots.map(({ created_at: _when, timing: _seconds, sha256: _hash, ...lasting }) => ({
      ...lasting,
      rows: readFileSync(
        join(runDir, "periodic_eval", "train", `${lasting.id}_step_${lasting.step}.samples.jsonl`),
        "utf8",
      ),
    })),
  );
}

it.each(kinds)(
  `loses and repeats nothing if it is killed at random moments, and reads no half-written checkpoint (%s)`,
  { timeout: kills * 120_000 },
  async (kind) => {
    const written = join(root, kind);
    for (const step of steps) await writeCheckpoint(written, { kind, step, maxSteps: 10 });
    const watch = watchAll.bind(null, configOf(kind));
    const whole = join(root, `${kind}-whole`);
    const { milliseconds } = await watch(written, whole);
    const expected = await outcome(whole);
    const evaluations = kind === "adapter" ? 2 : 1;
    expect(expected.filter(({ status }) => status === "complete").length).toBeGreaterThanOrEqual(
      6 * evaluations,
    );

    const growing = join(root, `${kind}-growing`);
    const runDir = join(root, `${kind}-killed`);
    const random = namedStream(`killed-watch ${kind}`);
    const writing = writeSlowly(written, growing);
    const moments: number[] = [];
    for (let left = kills; left > 0; left -= 1) {
      const moment = Math.round(random() * milliseconds);
      moments.push(moment);
      await watch(growing, runDir, moment);
    }
    await writing;
    await watch(growing, runDir);
    expect(await outcome(runDir), `killed after ${moments.join(", ")} ms`).toEqual(expected);
    const superseded = join(runDir, "periodic_eval", "superseded");
    expect(existsSync(superseded) ? readdirSync(superseded) : []).toEqual([]);
  },
);
