import { readRun } from "@periodic-eval/store";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { parse } from "yaml";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCli } from "../../program.ts";
import { serveJson } from "../../../../loggers/src/loopback.test-data.ts";
import { writeTwoPhases } from "./two-phases.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let config = "";
beforeAll(async () => void (config = await writeTwoPhases(folder)));

function run(...args: string[]) {
  return runCommand(args);
}

describe("train CONFIG", { timeout: 300_000 }, () => {
  it("says how to resume, not how to start over, when a restarted run is interrupted", async () => {
    const terminal = recordingTerminal();
    const interrupting = {
      ...terminal,
      out(text: string) {
        terminal.out(text);
        if (text.includes("coupling step 2")) process.emit("SIGINT");
      },
    };
    const args = ["train", config, "resume=never", `run_dir=${join(folder, "runs/restarted")}`];
    expect(await runCli(args, interrupting)).toBe(130);
    expect(terminal.errors.join("\n")).toMatch(
      /^Interrupted in coupling at step 2 of \d+\. Run the same command with resume=auto to resume from step 2\.$/m,
    );
  });

  it("fails when train.yaml cannot be written", async () => {
    const runDir = join(folder, "runs/restarted");
    const configPath = join(runDir, "train.yaml");
    const [begun, trained] = [readFileSync(configPath), await readdir(join(runDir, "checkpoints/coupling"))];
    const terminal = recordingTerminal();
    const hindering = {
      ...terminal,
      out(text: string) {
        terminal.out(text);
        if (!text.includes("snapshots go to")) return;
        rmSync(configPath);
        mkdirSync(configPath);
      },
    };
    expect(await runCli(["train", config, `run_dir=${runDir}`, "config.logSteps=2"], hindering)).toBe(1);
    expect(terminal.errors.join("\n")).toMatch(/train\.yaml: got EISDIR.*, expected .*\. \w/);
    expect(await readdir(join(runDir, "checkpoints/coupling"))).toEqual(trained);
    rmdirSync(configPath);
    rmSync(join(runDir, "train.1.yaml"));
    await writeFile(configPath, begun);
  });

  it("keeps the new and the previous configuration when resumed with another one", async () => {
    const runDir = join(folder, "runs/restarted");
    const stored = (name = "train.yaml") => readFileSync(join(runDir, name), "utf8");
    const begun = stored();
    const refused = await run("train", config, `run_dir=${runDir}`, "config.batchSize=3");
    expect(refused.err).toContain("got batchSize 3, expected batchSize 2");
    expect(stored()).toBe(begun);
    const { code } = await run("train", config, `run_dir=${runDir}`, "config.saveSteps=2");
    expect(code).toBe(0);
    expect(stored()).toBe(begun.replace("saveSteps: 1", "saveSteps: 2"));
    expect(stored("train.1.yaml")).toBe(begun);
  });

  it("sends messages to the webhook of a variable, whose address no file of the run has", async () => {
    const received: { readonly event: string; readonly phase: string }[] = [];
    const url = await serveJson((path, body) => {
      expect(path).toBe("/the-secret");
      received.push(body as (typeof received)[number]);
      return {};
    });
    vi.stubEnv("WEBHOOK", `${url}/the-secret`);
    const runDir = join(folder, "runs/notified");
    const { code } = await run("train", config, `run_dir=${runDir}`, "periodic_eval.notify.url_env=WEBHOOK");
    vi.unstubAllEnvs();
    expect(code).toBe(0);
    const ends = received.filter(({ event }) => event === "end");
    expect(ends.map(({ phase }) => phase)).toEqual(["coupling", "em"]);
    const files = readdirSync(runDir, { recursive: true, encoding: "utf8" }).map((name) =>
      join(runDir, name),
    );
    const withSecret = files.filter(
      (path) => statSync(path).isFile() && readFileSync(path).includes("the-secret"),
    );
    expect(withSecret).toEqual([]);
  });

  it("measures nothing without a periodic_eval block, and says so once", async () => {
    const path = join(folder, "unmeasured.yaml");
    const { periodic_eval: _, ...training } = parse(readFileSync(config, "utf8")) as Record<string, unknown>;
    await writeFile(path, JSON.stringify({ ...training, run_dir: "runs/unmeasured" }));
    const { code, out } = await run("train", path);
    expect(code).toBe(0);
    expect(out.match(/no periodic_eval block: nothing is measured/g)).toHaveLength(1);
    expect(out.match(/nothing is measured/g)).toHaveLength(1);
    const runDir = join(folder, "runs/unmeasured");
    // A run without snapshots has no page, and `report` agrees.
    expect(out).not.toContain("index.html");
    expect(out.split("\n").at(-1)).toBe(`${runDir}: nothing was measured, so there is no page`);
    expect(existsSync(join(runDir, "periodic_eval/index.html"))).toBe(false);
    expect((await run("report", runDir)).err).toContain("got no snapshot");
    expect((await readRun(runDir)).phases).toEqual([]);
    expect(readFileSync(join(runDir, "train.yaml"), "utf8")).not.toContain("periodic_eval");
  });

  it.each<[readonly string[], number, string]>([
    [["periodic_eval.phases.emm.kl=true"], 1, 'expected a phase of the run: "coupling" or "em"'],
    [["periodic_eval.subsample=3"], 1, 'Did you mean "subsample_n"?'],
    [["periodic_eval.layout=flt"], 1, 'expected "nested" or "flat"'],
    [["eval.periodic_evl={}"], 1, '(eval.periodic_evl): got the unknown option "periodic_evl"'],
    [
      ["eval.periodic_eval.kl=true"],
      1,
      "got a second block next to eval.periodic_eval, expected only one of the two",
    ],
    [["lora.rnk=3", "run_dir=runs/none"], 1, '(lora.rnk): got the unknown option "rnk"'],
    [["loggers.csv.pth=x"], 1, 'got the unknown option "pth", expected one of path'],
    [["loggers.tensorboard.now=1"], 1, "(loggers.tensorboard.now): "],
    [["loggers.mlflow.now=1"], 1, "(loggers.mlflow.now): "],
    [["phases.1.dataset=none.jsonl", "run_dir=runs/none2"], 1, "none.jsonl: got a path which does not exist"],
    [["--resume", "yes"], 2, "Allowed choices are auto, never."],
    [["--backend", "abacus"], 1, '--backend: got "abacus"'],
  ])("rejects %j", async (args, code, message) => {
    const refused = await run("train", config, ...args);
    expect(refused.code).toBe(code);
    expect(refused.err).toContain(message);
  });
});

it("trains without the default questions if they cannot be had, and says so", async () => {
  vi.stubEnv("HF_HUB_OFFLINE", "1");
  vi.stubEnv("HF_HUB_CACHE", join(folder, "cache"));
  const runDir = join(folder, "unasked");
  const path = join(folder, "unasked.yaml");
  const trained = [
    { phase: "train", dataset: join(folder, "em.jsonl"), config: { maxSteps: 1, batchSize: 2 } },
  ];
  const training = { model: microWorld(), run_dir: runDir, phases: trained, periodic_eval: {} };
  await writeFile(path, JSON.stringify(training));
  const { code, out } = await run("train", path, "--backend", "wasm");
  vi.unstubAllEnvs();
  expect([code, out]).toEqual([0, expect.stringContaining("Nothing will be measured: nobody asked")]);
  const { phases } = await readRun(runDir);
  expect(phases[0]!.snapshots.map(({ step, status }) => [step, status])).toEqual([
    [0, "skipped"],
    [1, "skipped"],
  ]);
});
