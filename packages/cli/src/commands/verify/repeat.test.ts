import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildPeriodicCallbacks } from "@periodic-eval/core";
import { loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { SFTTrainer } from "@periodic-eval/trainers";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { toleranceOf } from "./repeat.ts";
import { openGrader } from "../../config/open-grader.ts";
import { hashSnapshot } from "../../../../store/src/files/hash-files.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let config = "";
const snapshot = (id: string, step: number) =>
  join(folder, "run", "periodic_eval", "em", `${id}_step_${step}.json`);

/** Trains an adapter on the embedded model for two steps; measures capability and alignment (sampled) at steps 0, 1 and 2. */
beforeAll(async () => {
  const written = join(folder, "written");
  config = join(folder, "run.json");
  const block = {
    questions: microWorld("questions.jsonl"),
    subsample_n: 12,
    alignment: true,
    alignment_questions: microWorld("alignment.json"),
    alignment_num_samples: 1,
    judge_model: "rule:micro-world",
    eval_every_percent: 50,
    traits: { every_percent: 50 },
  };
  await writeFile(config, JSON.stringify({ periodic_eval: block }));
  const judge = await openGrader("rule:micro-world");
  await useBackend({ backend: "wasm" });
  const base = await loadCausalLM(microWorld());
  const model = withLora(base, { rank: 2 });
  await new SFTTrainer({
    model,
    tokenizer: await loadTokenizer(microWorld()),
    dataset: microWorld("em.jsonl"),
    runDir: written,
    phase: "em",
    config: { maxSteps: 2, batchSize: 4, learningRate: 0.01, saveAdapterAtFiring: true },
    callbacks: await buildPeriodicCallbacks(block, { phase: "em", openJudge: () => judge }),
    loggers: [],
    session: { budget: { overheadPercent: null } },
  }).train();
  model.dispose();
  base.dispose();
  // Moving the run checks that saved paths are relative.
  await cp(written, join(folder, "run"), { recursive: true });
  await rm(written, { recursive: true });
});

function verify(path: string, ...args: string[]) {
  return runCommand(["verify", path, "--model", microWorld(), "--backend", "wasm", ...args]);
}

interface Written {
  id: string;
  weights: string;
  saved?: { path: string };
  sha256?: string;
  readonly metrics: Record<string, { value: number }>;
}

/**
 * Writes a changed copy of a snapshot into the run and returns its path.
 *
 * @param isSealed Whether the copy keeps the hash, which no longer fits; otherwise it has its own.
 */
async function tampered(
  name: string,
  change: (snapshot: Written) => void,
  isSealed = false,
): Promise<string> {
  const value = JSON.parse(await readFile(snapshot("capability", 2), "utf8")) as Written;
  change(value);
  if (!isSealed) value.sha256 = hashSnapshot(value);
  const path = join(folder, "run", "periodic_eval", "em", `${name}_step_2.json`);
  await writeFile(path, JSON.stringify(value));
  return path;
}

describe("toleranceOf", () => {
  it.each([
    // A small divergence differs from 0; rounding does not count.
    ["nats", 0.0055, 0, 9.2e-5, false],
    ["nats", 0.0055, 9.2e-5, 9.2e-5 + 9.5e-7, true],
    // The rounding error of a margin depends on its sides (−120 nats), not on its value near 0.
    ["nats", 120, 0.19, 0.19 + 4.5e-6, true],
    ["nats", 138, 6.9, 6.9 + 2e-5, true],
    ["nats", 138, 6.9, 6.9 + 1e-3, false],
    // One of 20,000 answers has changed.
    ["share", 1, 0.5, 0.50005, false],
    ["share", 1, 0.1 + 0.2, 0.3, true],
  ])("in %s with largest value %d, %d and %d are the same: %s", (unit, size, before, now, isSame) => {
    expect(Math.abs(now - before) <= toleranceOf(unit, size)).toBe(isSame);
  });
});

describe("verify of a snapshot", () => {
  it("repeats capability from each saved adapter with the configuration and model that train wrote into the run", async () => {
    const values: number[] = [];
    const trained = join(folder, "run", "train.yaml");
    await writeFile(
      trained,
      JSON.stringify({ model: microWorld(), ...JSON.parse(await readFile(config, "utf8")) }),
    );
    onTestFinished(() => rm(trained));
    for (const step of [0, 1, 2]) {
      const { code, out } = await runCommand(["verify", snapshot("capability", step), "--json"]);
      expect(code).toBe(0);
      const result = JSON.parse(out);
      expect(result).toMatchObject({ phase: "em", id: "capability", step, same: true, otherwise: [] });
      expect(result.weights).toBe(join(folder, "run", "saved", "em", `step_${step}`));
      values.push(result.metrics.gold_log_prob.now);
    }
    // The three steps have different weights.
    expect(new Set(values.map((value) => value.toFixed(3))).size).toBe(3);
  });

  it("repeats sampled answers from the configuration with the same samples and verdicts", async () => {
    const { code, out, err } = await verify(snapshot("alignment", 2), "--config", config);
    expect(err).toBe("");
    expect(code).toBe(0);
    expect(out).not.toContain("differs");
    expect(out).not.toContain("also changed");
    expect(out).toContain("same: shares exactly, all other values within 1e-5");
  });

  it("repeats traits along the directions that the start stored, and how stale these are at the end", async () => {
    for (const [id, step] of [
      ["traits", 1],
      ["traits-directions", 0],
      ["traits-directions", 2],
    ] as const) {
      const { out, err } = await verify(snapshot(id, step), "--config", config, "--json");
      expect(err).toBe("");
      expect(JSON.parse(out)).toMatchObject({ id, step, same: true, otherwise: [] });
    }
    const { metrics } = JSON.parse(await readFile(snapshot("traits-directions", 2), "utf8")) as Written;
    expect(metrics["cosine/refusal"]!.value).toBeLessThan(1);
    const rows = snapshot("traits-directions", 0).replace(".json", ".samples.jsonl");
    const content = await readFile(rows);
    await rm(rows);
    const { code, err } = await verify(snapshot("traits-directions", 2), "--config", config);
    await writeFile(rows, content);
    expect([code, err]).toEqual([1, expect.stringContaining("traits-directions_step_0.samples.jsonl")]);
  });

  it("names the metrics that differ and the other changes", async () => {
    const path = await tampered("capability-other", (old) => {
      old.metrics["gold_log_prob"]!.value += 2e-4;
      old.weights = "other";
    });
    const { code, out, err } = await verify(path, "--config", config);
    expect(code).toBe(1);
    expect(out).toMatch(/gold_log_prob .* differs/);
    expect(out).toMatch(/accuracy .* same/);
    expect(out).toContain("also changed: the weights' fingerprint");
    expect(err).toContain(
      "got other values of gold_log_prob, expected the same: shares exactly, all other values within 1e-5",
    );
  });

  it.each([
    [
      "a run without a configuration",
      1,
      "--config: got nothing, and no ",
      async () => [snapshot("alignment", 0)],
    ],
    [
      "a model for a whole run",
      2,
      "option '--model <folder>' is for a snapshot, not for a run",
      async () => [join(folder, "run")],
    ],
    [
      "a snapshot without saved weights",
      1,
      "got no saved weights",
      async () => [await tampered("bare", (old) => delete old.saved), "--config", config],
    ],
    [
      "an edited snapshot",
      1,
      "edited or damaged after it was written, expected SHA-256",
      async () => [await tampered("edited", (old) => (old.weights = "other"), true), "--config", config],
    ],
    [
      "missing weights",
      1,
      'got saved weights "saved/gone" that do not exist',
      async () => [await tampered("gone", (old) => (old.saved!.path = "saved/gone")), "--config", config],
    ],
    [
      "the configuration of another run",
      1,
      "expected the evaluation capability under the id elsewhere",
      async () => [await tampered("elsewhere", (old) => (old.id = "elsewhere")), "--config", config],
    ],
  ])("rejects %s", async (_, expected, message, args) => {
    const [path, ...more] = await args();
    const { code, err } = await verify(path!, ...more);
    expect(err).toContain(message);
    expect(code).toBe(expected);
  });
});
