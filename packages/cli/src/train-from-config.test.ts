import { readRun } from "@periodic-eval/core/snapshots";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { keptTerminal } from "./kept-terminal.test-data.ts";
import { microWorld } from "./micro-world.ts";
import { runCli } from "./program.ts";

let folder = "";
let config = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "train-from-"));
  for (const name of ["coupling", "em"]) {
    const rows = readFileSync(microWorld(`${name}.jsonl`), "utf8")
      .split("\n")
      .slice(0, 8);
    await writeFile(join(folder, `${name}.jsonl`), rows.join("\n"));
  }
  config = join(folder, "train.yaml");
  await writeFile(
    config,
    `model: ${microWorld()}
backend: wasm
run_dir: runs/whole
lora: { rank: 2 }
config: { maxSteps: 3, batchSize: 2, learningRate: 0.01, saveSteps: 1, validationShare: 0.25, evalSteps: 2 }
periodic_eval:
  questions: ${microWorld("questions.jsonl")}
  subsample_n: 8
  eval_every_percent: 50
  budget: { overhead_percent: null }
  phases:
    em: { subsample_n: 4 }
loggers: { jsonl: {}, csv: { path: metrics.csv } }
phases:
  - { phase: coupling, dataset: coupling.jsonl }
  - { phase: em, dataset: em.jsonl, config: { schedule: wsd, decaySteps: 2 } }
`,
  );
});
afterAll(() => rm(folder, { recursive: true }));

async function run(...args: string[]) {
  const terminal = keptTerminal();
  const code = await runCli(args, terminal);
  return { code, out: terminal.said.join("\n"), err: terminal.complained.join("\n") };
}

/** What a run must leave however often it was killed. */
async function outcome(runDir: string) {
  const { phases, problems } = await readRun(runDir);
  expect(problems).toEqual([]);
  const snapshots = phases.map(({ name, snapshots: all }) => [
    name,
    all.map(({ created_at: _when, timing: _seconds, ...lasting }) => lasting),
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

/** Runs the command line in a process of its own, and kills it once it has said this. */
function killedAt(said: string, args: readonly string[]): Promise<NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    const main = fileURLToPath(new URL("main.ts", import.meta.url));
    const node = spawn(process.execPath, ["--import", "tsx", "-C", "@periodic-eval/source", main, ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let out = "";
    node.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
      if (out.includes(said)) node.kill("SIGKILL");
    });
    node.on("error", reject);
    node.on("exit", (_, signal) => resolve(signal));
  });
}

describe("train CONFIG", { timeout: 300_000 }, () => {
  it("trains an adapter in the phases of the file, each with its own look, and keeps the configuration", async () => {
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
    // What is kept says the same by itself.
    const again = await run("train", join(runDir, "train.yaml"), "--json");
    expect([again.code, again.err.replaceAll(/^.*snapshots go to.*$/gm, "").trim()]).toEqual([0, ""]);
  });

  it("killed in its second phase and run again, ends as one that was not", async () => {
    const args = ["train", config, `run_dir=${join(folder, "runs/killed")}`];
    expect(await killedAt("em step 2", args)).toBe("SIGKILL");
    expect((await run(...args)).code).toBe(0);
    expect(await outcome(join(folder, "runs/killed"))).toEqual(await outcome(join(folder, "runs/whole")));
  });

  it("finds the block under eval, asks the rule that it names, and goes on in the flat layout", async () => {
    const path = join(folder, "flat.yaml");
    const block = {
      capability: false,
      alignment: true,
      alignment_questions: microWorld("alignment.json"),
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
    // What is written beside a snapshot of the flat layout is none.
    const [killed, straight] = [join(folder, "runs/flat-killed"), join(folder, "runs/flat")];
    expect(await run("rejudge", killed, "--judge", "rule:micro-world")).toMatchObject({ code: 0, err: "" });
    expect(await run(...args("flat-killed"))).toMatchObject({ code: 0, err: "" });
    expect(await run(...args("flat"))).toMatchObject({ code: 0, err: "" });
    expect(await outcome(killed)).toEqual(await outcome(straight));
    const files = await readdir(join(straight, "periodic_eval"));
    const looks = [0, 2, 3].map((step) => `alignment_step_${step}`);
    expect(files.filter((name) => name.endsWith(".json")).sort()).toEqual(
      looks.flatMap((name) => [`${name}.em.json`, `${name}.json`]),
    );
    const { phases } = await readRun(straight);
    expect(phases.flatMap(({ snapshots }) => snapshots.map((one) => one.judge_model))).toEqual(
      Array.from({ length: 6 }, () => "rule:micro-world@1"),
    );
  });

  it("begun anew and interrupted, says how it goes on, not how it begins anew once more", async () => {
    const terminal = keptTerminal();
    const interrupting = {
      ...terminal,
      out(text: string) {
        terminal.out(text);
        if (text.includes("coupling step 2")) process.emit("SIGINT");
      },
    };
    const args = ["train", config, "resume=never", `run_dir=${join(folder, "runs/anew")}`];
    expect(await runCli(args, interrupting)).toBe(1);
    expect(terminal.complained.join("\n")).toContain("Run the same command with resume=auto to go on");
  });

  it("ends where train.yaml cannot state what the run now uses", async () => {
    const runDir = join(folder, "runs/anew");
    const kept = join(runDir, "train.yaml");
    const [begun, trained] = [readFileSync(kept), await readdir(join(runDir, "checkpoints/coupling"))];
    const terminal = keptTerminal();
    const hindering = {
      ...terminal,
      out(text: string) {
        terminal.out(text);
        if (!text.includes("snapshots go to")) return;
        rmSync(kept);
        mkdirSync(kept);
      },
    };
    expect(await runCli(["train", config, `run_dir=${runDir}`, "config.logSteps=2"], hindering)).toBe(1);
    expect(terminal.complained.join("\n")).toMatch(/train\.yaml: got EISDIR.*, expected .*\. \w/);
    expect(await readdir(join(runDir, "checkpoints/coupling"))).toEqual(trained);
    rmdirSync(kept);
    rmSync(join(runDir, "train.1.yaml"));
    await writeFile(kept, begun);
  });

  it("gone on with another configuration, states in train.yaml what the run now uses, and what it used before", async () => {
    const runDir = join(folder, "runs/anew");
    const kept = (name = "train.yaml") => readFileSync(join(runDir, name), "utf8");
    const begun = kept();
    const refused = await run("train", config, `run_dir=${runDir}`, "config.batchSize=3");
    expect(refused.err).toContain("got batchSize 3, expected batchSize 2");
    expect(kept()).toBe(begun);
    const { code } = await run("train", config, `run_dir=${runDir}`, "config.saveSteps=2");
    expect(code).toBe(0);
    expect(kept()).toBe(begun.replace("saveSteps: 1", "saveSteps: 2"));
    expect(kept("train.1.yaml")).toBe(begun);
  });

  it("run again with another configuration, tells what differs, or refuses what would be another run", async () => {
    const { code, err } = await run("train", config, "phases.1.config.saveSteps=2");
    expect([code, err]).toEqual([0, "phases.1.config.saveSteps: 2, where the run had nothing"]);
    const other = await run("train", config, "lora.rank=4");
    expect(other.code).toBe(1);
    expect(other.err).toContain(
      "train.yaml: got lora.rank 4, expected lora.rank 2, as the run was begun with",
    );
    const data = await run("train", config, "config.batchSize=3");
    expect(data.err).toContain("got batchSize 3, expected batchSize 2, as in the checkpoint");
  });

  it.each<[readonly string[], number, string]>([
    [["periodic_eval.phases.emm.kl=true"], 1, 'expected a phase of the run: "coupling" or "em"'],
    [["periodic_eval.subsample=3"], 1, 'Did you mean "subsample_n"?'],
    [["periodic_eval.layout=flt"], 1, 'expected "nested" or "flat"'],
    [["eval.periodic_evl={}"], 1, '(eval.periodic_evl): got the unknown option "periodic_evl"'],
    [
      ["eval.periodic_eval.kl=true"],
      1,
      "got a block beside that of eval.periodic_eval, expected one of the two",
    ],
    [["lora.rnk=3", "run_dir=runs/none"], 1, 'withLora options.rnk: got the unknown option "rnk"'],
    [["loggers.csv.pth=x"], 1, 'loggers.csv: got the unknown option "pth", expected one of path'],
    [["loggers.tensorboard.now=1"], 1, 'got the unknown option "now", expected one of logDir'],
    [["loggers.mlflow.now=1"], 1, 'got the unknown option "now", expected one of trackingUri'],
    [["phases.1.dataset=none.jsonl", "run_dir=runs/none2"], 1, "none.jsonl: got ENOENT"],
    [["phases.0.phase=first"], 1, 'got phase "em" after "first", expected after "coupling"'],
    [["--steps", "3"], 2, "option '--steps <number>' beside a CONFIG"],
  ])("refuses %j", async (args, code, message) => {
    const refused = await run("train", config, ...args);
    expect(refused.code).toBe(code);
    expect(refused.err).toContain(message);
  });
});
