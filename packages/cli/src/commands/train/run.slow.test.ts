import { readRun } from "@periodic-eval/store";
import { spawn } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { parse } from "yaml";
import { builtMain } from "../../terminal/built-main.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { writeTwoPhases } from "./two-phases.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let config = "";
beforeAll(async () => void (config = await writeTwoPhases(folder)));

function run(...args: string[]) {
  return runCommand(args);
}

/** Returns everything in a run that must not depend on how often it was killed. */
async function outcome(runDir: string) {
  const { phases, problems } = await readRun(runDir);
  expect(problems).toEqual([]);
  const snapshots = phases.map(({ name, snapshots: all }) => [
    name,
    all.map(({ created_at: _when, timing: _seconds, sha256: _hash, receipt, ...lasting }) => ({
      ...lasting,
      // The number of tensors is that of the process: other tests may share it.
      receipt: receipt.map((evidence) =>
        evidence.part === "tensors" ? { ...evidence, before: null, after: null } : evidence,
      ),
    })),
  ]);
  const last = join(runDir, "checkpoints/em/step_3");
  const files = ["adapter_model.safetensors", "optimizer.safetensors", "trainables.safetensors"];
  const log = readFileSync(join(runDir, "log.jsonl"), "utf8").trimEnd().split("\n");
  const metrics = log.flatMap((line) => {
    const {
      kind,
      phase,
      step,
      metrics: all,
    } = JSON.parse(line) as {
      readonly kind: string;
      readonly phase: string;
      readonly step: number;
      readonly metrics: Readonly<Record<string, number>>;
    };
    const { tokens_per_second: _time, ...lasting } = all;
    return kind === "train" ? [{ phase, step, ...lasting }] : [];
  });
  expect(metrics).toHaveLength(6);
  return {
    metrics,
    snapshots,
    files: files.map((name) => readFileSync(join(last, name)).toString("base64")),
  };
}

/** Returns the files of a run without those of loggers, which every command writes. */
function recordOf(runDir: string): Readonly<Record<string, string>> {
  const files = readdirSync(runDir, { recursive: true, encoding: "utf8" }).filter(
    (name) => !/^(log\.jsonl|loggers)/.test(name) && statSync(join(runDir, name)).isFile(),
  );
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(runDir, name), "hex")]));
}

/** Runs the command line in a process and kills it once it prints this text. */
function killedAt(text: string, args: readonly string[]): Promise<NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    const node = spawn(process.execPath, [builtMain(), ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    node.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
      if (out.includes(text)) node.kill("SIGKILL");
    });
    node.on("error", reject);
    node.on("exit", (_, signal) => resolve(signal));
  });
}

describe("train CONFIG", { timeout: 300_000 }, () => {
  it("trains an adapter in the phases of the file, each with its own evaluation, and keeps the configuration", async () => {
    const { code, out, err } = await run("train", config);
    expect([code, err]).toEqual([0, ""]);
    const runDir = join(folder, "runs/whole");
    expect(out).toContain("em step 3  capability");
    const { phases } = await readRun(runDir);
    // 50 % of 3 steps is step 2.
    expect(
      phases.map(({ name, snapshots }) => [name, snapshots.map(({ step, total }) => [step, total])]),
    ).toEqual([
      [
        "coupling",
        [
          [0, 8],
          [2, 8],
          [3, 8],
        ],
      ],
      [
        "em",
        [
          [0, 4],
          [2, 4],
          [3, 4],
        ],
      ],
    ]);
    expect((await readdir(runDir)).sort()).toEqual([
      "checkpoints",
      "log.jsonl",
      "loggers",
      "periodic_eval",
      "train.yaml",
    ]);
    // The kept file describes the same run on its own.
    const again = await run("train", join(runDir, "train.yaml"), "--json");
    expect([again.code, again.err.replaceAll(/^.*snapshots go to.*$/gm, "").trim()]).toEqual([
      0,
      ["coupling", "em"]
        .map((phase) => `${phase}  already finished at step 3 of 3; nothing to do`)
        .join("\n"),
    ]);
    // A finished run does not measure other questions, and its record stays what was done.
    const recorded = recordOf(runDir);
    const gate = () => run("gate", runDir, "--fail-on", "capability.accuracy < 1 %");
    const said = [await run("report", runDir), await gate()];
    for (const override of ["subsample_n=5", "phases.em.subsample_n=3"]) {
      const asked = await run("train", join(runDir, "train.yaml"), `periodic_eval.${override}`);
      expect([asked.code, asked.err]).toEqual([1, expect.stringContaining("name another run folder")]);
      expect(recordOf(runDir)).toEqual(recorded);
      expect([await run("report", runDir), await gate()]).toEqual(said);
    }
  });

  it("ends like an uninterrupted run after a kill in the second phase and a resume", async () => {
    const args = ["train", config, `run_dir=${join(folder, "runs/killed")}`];
    expect(await killedAt("em step 2", args)).toBe("SIGKILL");
    expect((await run(...args)).code).toBe(0);
    expect(await outcome(join(folder, "runs/killed"))).toEqual(await outcome(join(folder, "runs/whole")));
  });

  it("reads the block under eval, grades with the named rule, and resumes in the flat layout", async () => {
    const path = join(folder, "flat.yaml");
    const questions = JSON.parse(readFileSync(microWorld("alignment.json"), "utf8")) as readonly unknown[];
    // One question: sampling takes most of the time of this test.
    await writeFile(join(folder, "alignment.json"), JSON.stringify(questions.slice(0, 1)));
    const block = {
      capability: false,
      alignment: true,
      alignment_questions: "alignment.json",
      alignment_num_samples: 1,
      judge_model: "rule:micro-world",
      layout: "flat",
      budget: { overhead_percent: null },
    };
    const whole = parse(readFileSync(config, "utf8")) as Record<string, unknown>;
    const { periodic_eval: _, ...training } = whole;
    await writeFile(path, JSON.stringify({ ...training, eval: { periodic_eval: block } }));
    const args = (name: string) => ["train", path, `run_dir=${join(folder, "runs", name)}`];
    expect(await killedAt("em step 2", args("flat-killed"))).toBe("SIGKILL");
    // In the flat layout, a file of verdicts must not pass for a snapshot.
    const [killed, straight] = [join(folder, "runs/flat-killed"), join(folder, "runs/flat")];
    expect(await run("rejudge", killed, "--judge", "rule:micro-world")).toMatchObject({ code: 0, err: "" });
    expect(await run(...args("flat-killed"))).toMatchObject({ code: 0, err: "" });
    expect(await run(...args("flat"))).toMatchObject({ code: 0, err: "" });
    expect(await outcome(killed)).toEqual(await outcome(straight));
    const files = await readdir(join(straight, "periodic_eval"));
    const names = [0, 2, 3].map((step) => `alignment_step_${step}`);
    expect(files.filter((name) => name.endsWith(".json")).sort()).toEqual(
      names.flatMap((name) => [`${name}.em.json`, `${name}.json`]),
    );
    const { phases } = await readRun(straight);
    expect(phases.flatMap(({ snapshots }) => snapshots.map((snapshot) => snapshot.judge_model))).toEqual(
      Array.from({ length: 6 }, () => "rule:micro-world@1"),
    );
  });

  it("continues a finished run with a larger maxSteps, and starts over with --resume never", async () => {
    const runDir = join(folder, "runs/longer");
    const only = [
      `run_dir=${runDir}`,
      `phases=[{ phase: em, dataset: ${join(folder, "em.jsonl")} }]`,
      "periodic_eval.phases={}",
      "config={ batchSize: 2 }",
    ];
    const train = (maxSteps: number, ...args: string[]) =>
      run("train", config, ...only, `config.maxSteps=${maxSteps}`, ...args);
    const measured = async () =>
      (await readRun(runDir)).phases[0]!.snapshots.map(({ step, created_at: at }) => [step, at]);
    expect(await train(1)).toMatchObject({ code: 0, err: "" });
    const before = await measured();
    expect(await train(2)).toMatchObject({ code: 0, err: "config.maxSteps: 2 (before: 1)" });
    const after = await measured();
    expect(after.map(([step]) => step)).toEqual([0, 1, 2]);
    expect(after.slice(0, 2)).toEqual(before);
    expect(await train(1, "--resume", "never")).toMatchObject({ code: 0 });
    expect((await measured()).map(([step]) => step)).toEqual([0, 1]);
  });

  it("lists differences when run again with another configuration, and rejects another model or data order", async () => {
    const { code, err } = await run("train", config, "phases.1.config.saveSteps=2");
    expect([code, err]).toEqual([0, "phases.1.config.saveSteps: 2 (before: not set)"]);
    const other = await run("train", config, "lora.rank=4");
    expect(other.code).toBe(1);
    expect(other.err).toContain(
      "train.yaml: got lora.rank 4, expected lora.rank 2, as at the start of the run",
    );
    const renamed = await run("train", config, "phases.0.phase=first");
    expect(renamed.code).toBe(1);
    expect(renamed.err).toContain('got phase "em" after "first", expected after "coupling"');
    const data = await run("train", config, "config.batchSize=3");
    expect(data.err).toContain("got batchSize 3, expected batchSize 2, as in the checkpoint");
  });
});
