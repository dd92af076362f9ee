import { verifyCheckpoint } from "@periodic-eval/trainers";
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { differencesOf } from "./alike.test-data.ts";
import { commands, runCommand, type CommandName } from "./commands.test-data.ts";
import { bytesIn, copyEarlierFiles, readJson, readJsonLines } from "./files.test-data.ts";
import { mlflowServer, type MlflowServer } from "./mlflow-server.test-data.ts";
import { outcomes } from "./outcomes.test-data.ts";

let root = "";
let mlflow: MlflowServer;
const workingFolder = process.cwd();

beforeAll(async () => {
  mlflow = await mlflowServer();
  root = await copyEarlierFiles(mlflow.address);
  process.chdir(root);
});
afterAll(async () => {
  process.chdir(workingFolder);
  await mlflow.close();
  await rm(root, { recursive: true });
});

async function run(...args: readonly string[]): Promise<void> {
  const { code, text } = await runCommand(args);
  expect(code, text).toBe(0);
}

/** Resumes a run by the command that started it. It must end as the earlier commit ended it without interruption. */
async function resume(name: CommandName): Promise<void> {
  await run(...commands[name].args(`${name}/interrupted`, mlflow.address));
  const outcome: unknown = JSON.parse(JSON.stringify(await outcomes[name](`${name}/interrupted`)));
  expect(differencesOf(await readJson(`${name}/whole.json`), outcome)).toEqual([]);
}

const snapshots = /periodic_eval\/.*_step_\d+\.(json|samples\.jsonl)$/;

/** The lines of a log up to a step of the phase that was interrupted. They hold times: a step trained again has another line. */
async function loggedUpTo(path: string, phase: string, step: number): Promise<readonly string[]> {
  const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
  return lines.filter((line) => {
    const at = JSON.parse(line) as { readonly phase: string; readonly step: number };
    return at.phase !== phase || at.step <= step;
  });
}

/** A line of an outbox's journal. */
interface JournalLine {
  readonly kind: string;
  readonly point?: { readonly values: object };
  readonly points?: number;
}

const sum = (numbers: readonly number[]) => numbers.reduce((all, one) => all + one, 0);

describe("train, interrupted by an earlier commit", () => {
  it.each([
    "training/interrupted/checkpoints/first/step_4",
    "training/interrupted/checkpoints/second/step_4",
    "dpo/interrupted/checkpoints/dpo/step_4",
  ])("left a whole checkpoint: %s", async (folder) => {
    expect(await verifyCheckpoint(folder)).toMatchObject({ schema_version: 1, step: 4 });
  });

  it("resumes the second phase at its checkpoint and ends with the recorded weights, losses and metrics", async () => {
    const folder = "training/interrupted";
    const measured = await bytesIn(folder, snapshots);
    expect(Object.keys(measured)).toHaveLength(4 * 2);
    const logged = await loggedUpTo(`${folder}/log.jsonl`, "second", 4);
    // Steps 1 to 4 of both phases, their starts, and the snapshots of step 4 and of step 3.
    expect(logged).toHaveLength(4 + 2 + 4 + 2);
    await resume("training");
    expect(await bytesIn(folder, snapshots)).toMatchObject(measured);
    expect(await loggedUpTo(`${folder}/log.jsonl`, "second", 4)).toEqual(logged);

    // The MLflow run goes on: it gets every point that the earlier commit had not sent.
    expect(mlflow.asked).not.toContain("runs/create");
    const journal = (await readJsonLines(`${folder}/loggers/mlflow.jsonl`)) as readonly JournalLine[];
    const points = journal.flatMap(({ point }) => (point ? [Object.keys(point.values).length] : []));
    const sent = journal.flatMap(({ kind, points: count }) => (kind === "sent" ? [count!] : []));
    expect(sum(sent)).toBe(points.length);
    expect(mlflow.received).toHaveLength(sum(points.slice(sent[0])));

    // The kept configuration describes the same run, of which nothing is left to train.
    const log = await readFile(`${folder}/log.jsonl`, "utf8");
    await run("train", `${folder}/train.yaml`);
    expect(await readFile(`${folder}/log.jsonl`, "utf8")).toBe(log);
  });

  it("resumes DPO of an adapter with the stored log-probabilities of the reference", async () => {
    const folder = "dpo/interrupted";
    const kept = new RegExp(`${snapshots.source}|reference/|saved/dpo/step_[03]/`);
    const before = await bytesIn(folder, kept);
    expect(Object.keys(before)).toHaveLength(3 * 2 + 1 + 2 * 2);
    const logged = await loggedUpTo(`${folder}/log.jsonl`, "dpo", 4);
    expect(logged).toHaveLength(4 + 3);
    await resume("dpo");
    expect(await bytesIn(folder, kept)).toMatchObject(before);
    expect(await loggedUpTo(`${folder}/log.jsonl`, "dpo", 4)).toEqual(logged);
  });

  it("replays a snapshot from its saved adapter, with the same metrics", async () => {
    const snapshot = "dpo/interrupted/periodic_eval/capability_step_3.json";
    const questions = ["--questions", "inputs/questions.jsonl"];
    await run("replay", snapshot, "--model", "inputs/model", ...questions, "--backend", "wasm");
  });
});

describe("feedback, interrupted by an earlier commit", () => {
  it("writes the missing line of a trained step, trains the next step, and keeps complete files", async () => {
    const folder = "feedback/interrupted/brief";
    const complete = /(baseline|metadata)\.json$|step_2\//;
    const [lines, before] = [
      await readFile(`${folder}/steps.jsonl`, "utf8"),
      await bytesIn(folder, complete),
    ];
    expect(lines.match(/\n/g)).toHaveLength(1);
    const trained = `${folder}/checkpoints/sdpo/step_2/trainer_state.json`;
    const { mtimeMs } = await stat(trained);
    await resume("feedback");
    expect((await readFile(`${folder}/steps.jsonl`, "utf8")).startsWith(lines)).toBe(true);
    expect(await bytesIn(folder, complete)).toEqual(before);
    // The checkpoint was not written again, so its step was not trained again.
    expect((await stat(trained)).mtimeMs).toBe(mtimeMs);
  });
});

describe("eval --suite, interrupted by an earlier commit", () => {
  it("keeps the finished task, measures the other, and adds the run to metrics.json", async () => {
    const folder = "suite/interrupted";
    const { tasks: done } = (await readJson(`${folder}/metrics.base.partial.json`)) as {
      readonly tasks: Readonly<Record<string, { readonly snapshot: { readonly created_at: string } }>>;
    };
    expect(Object.keys(done)).toEqual(["arc_easy"]);
    const [first] = (await metricsOf(folder)).runs;
    const samples = await bytesIn(folder, /samples_arc_easy_/);
    await resume("suite");
    const { tasks } = (await readJson(join(folder, "jobs/base/results.json"))) as {
      readonly tasks: Readonly<Record<string, unknown>>;
    };
    expect(Object.keys(tasks)).toEqual(["arc_easy", "gsm8k"]);
    // Its time says that it was not measured again.
    expect(tasks["arc_easy"]).toEqual(done["arc_easy"]!.snapshot);
    expect(await bytesIn(folder, /samples_arc_easy_/)).toEqual(samples);
    const { runs } = await metricsOf(folder);
    expect(runs.map(({ name }) => name)).toEqual(["first", "base"]);
    expect(runs[0]).toEqual(first);

    // The same command again finds the run done.
    const written = await readFile(`${folder}/metrics.json`, "utf8");
    await resume("suite");
    expect(await readFile(`${folder}/metrics.json`, "utf8")).toBe(written);
    await run("report", folder, "--against", "first");
  });
});

const metricsOf = async (folder: string) =>
  (await readJson(`${folder}/metrics.json`)) as { readonly runs: readonly { readonly name: string }[] };
