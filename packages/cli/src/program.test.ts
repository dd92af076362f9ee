import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "./run-command.test-data.ts";
import { defaultQuestions } from "@periodic-eval/core/evaluations";
import { readRun, snapshotJsonSchema } from "@periodic-eval/store";
import { Ajv2020 } from "ajv/dist/2020.js";
import { createProgram } from "./program.ts";
import { recordingTerminal } from "./terminal/recording-terminal.test-data.ts";
import { builtMain } from "./terminal/built-main.test-data.ts";
import { defaultQuestions as defaultOfCommands } from "./config/command-options.ts";
import { microWorld } from "./demo/micro-world.ts";
import { temporaryFolder } from "../../testing/src/temporary-folder.test-data.ts";

/** Runs a command and returns its exit code and output. */
function run(...args: string[]) {
  return runCommand(args);
}

const folder = temporaryFolder(afterAll);

it("asks the same questions by default as the library", () => {
  expect(defaultOfCommands).toBe(defaultQuestions);
});

it("has --json in every command", async () => {
  const { commands } = await createProgram(recordingTerminal());
  const all = commands.flatMap((command) => (command.commands.length > 0 ? command.commands : [command]));
  expect(all.length).toBeGreaterThan(14);
  const without = all.filter(({ options }) => !options.some(({ long }) => long === "--json"));
  expect(without.map((command) => command.name())).toEqual([]);
});

it.each([
  ["eval", "--model", "none", "--questions"],
  ["eval", "--model", "none", "--questions", "missing.jsonl"],
])("reads the questions before it looks for the model: %s %s %s %s", async (...args) => {
  // Vitest sets HF_HUB_OFFLINE.
  const { code, err } = await run(...args);
  expect(code).toBe(1);
  expect(err).toMatch(/--questions/);
});

describe("wrong usage ends with 2 and an explanation", () => {
  it.each([
    [["dmo"], "Did you mean demo?"],
    [["nonsense"], "unknown command 'nonsense'"],
    [["help", "nonsense"], "unknown command 'nonsense', expected one of demo, "],
    [["nonsense", "--help"], "unknown command 'nonsense'"],
    [["help", "data", "nonsense"], "unknown command 'nonsense', expected one of list, get"],
    [["data", "nonsense", "-h"], "unknown command 'nonsense', expected one of list, get"],
    [["train"], "missing required argument 'config'"],
    [["demo", "--steps", "0"], "Expected an integer of 1 or more."],
    [
      ["eval", "--model", "m", "--questions", "q", "--method", "letters,multiple"],
      'Got "multiple", expected one or more of letters, cloze.',
    ],
    [
      ["eval", "--model", "m", "--questions", "q", "--method", "cloze", "--system", "Be brief."],
      "option '--system <text>' is for the method letters: cloze renders no chat",
    ],
  ])("%j", async (args, message) => {
    const { code, out, err } = await run(...args);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
  });

  it("exits with 0 for help and version", async () => {
    expect(await run("--version")).toEqual({ code: 0, out: "0.1.0", err: "" });
    expect((await run("--help")).out).toContain("demo");
    for (const args of [
      ["help"],
      ["help", "data", "get"],
      ["data", "get", "-h"],
      ["feedback", "a=b", "--help"],
    ])
      expect(await run(...args)).toMatchObject({ code: 0, err: "" });
  });
});

it("fits the help of each command on a screen of 24 lines; eval, with three ways to measure, needs 30", async () => {
  const program = await createProgram(recordingTerminal());
  const lines = program.commands.map((command) => {
    let help = "";
    command.configureOutput({ writeOut: (text) => (help += text), getOutHelpWidth: () => 80 });
    command.outputHelp();
    return [command.name(), help.trimEnd().split("\n").length] as const;
  });
  expect(lines.length).toBeLessThanOrEqual(15);
  expect(lines.filter(([name, count]) => count > (name === "eval" ? 30 : 24))).toEqual([]);
});

it("shows escape sequences of names and rows escaped", async () => {
  const questions = join(folder, "bad\u202e\x1b]0;title\x07.jsonl");
  await writeFile(questions, '{"question": "\\u009b2J", "choices": "\\u001b[2J"}\n');
  const { err } = await run("eval", "--model", "none", "--questions", questions);
  expect(err).toContain("bad\\u202e\\x1b]0;title\\x07.jsonl:1");
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  expect(err).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]/);
});

describe("an error ends with 1 and one line that says what to do", () => {
  it.each([
    [
      "a missing run",
      ["report", "FOLDER/none"],
      /^\[periodic-eval\] .*none: got no snapshot and no metrics\.json, expected snapshots under periodic_eval\/, the summary\.json of feedback, or the metrics\.json of suites\. Pass/,
    ],
    [
      "a missing model",
      ["eval", "--model", "FOLDER/none", "--questions", microWorld("questions.jsonl"), "--backend", "cpu"],
      /^\[periodic-eval\] .*none/,
    ],
    [
      "an unknown backend",
      ["eval", "--model", "m", "--questions", microWorld("questions.jsonl"), "--backend", "gpu"],
      /^\[periodic-eval\] --backend: got "gpu", expected "tfjs-node-gpu" or /,
    ],
    [
      "an unknown backend of train",
      ["train", "FOLDER/train.yaml", "--backend", "gpu"],
      /^\[periodic-eval\] --backend: got "gpu", expected "tfjs-node-gpu" or /,
    ],
    [
      "a missing suite",
      ["eval", "--model", "m", "--suite", "FOLDER/none.yaml"],
      /^\[periodic-eval\] --suite: got ".*none\.yaml", which does not exist/,
    ],
    [
      "a missing suite on a backend",
      ["eval", "--model", "m", "--suite", "FOLDER/none.yaml", "--backend", "cpu"],
      /^\[periodic-eval\] --suite: got ".*none\.yaml", which does not exist/,
    ],
    [
      "a missing configuration",
      ["watch", "FOLDER", "--base", "m", "--run-dir", "FOLDER/watched", "--config", "FOLDER/none.yaml"],
      /^\[periodic-eval\] --config: got ".*none\.yaml", which does not exist/,
    ],
    [
      "a missing base model",
      ["watch", "FOLDER", "--base", "FOLDER/none", "--run-dir", "FOLDER/watched"],
      /^\[periodic-eval\] --base, .*none: got neither an existing folder/,
    ],
    ["an unknown judge", ["rejudge", "FOLDER", "--judge", "x"], /^\[periodic-eval\] --judge: got /],
  ])("%s", async (_, args, message) => {
    await writeFile(
      join(folder, "train.yaml"),
      `model: ${microWorld()}\nrun_dir: ${folder}/trained\nphases: [{ phase: em, dataset: ${microWorld("coupling.jsonl")} }]\n`,
    );
    const { code, out, err } = await run(...args.map((arg) => arg.replace("FOLDER", folder)));
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(message);
    expect(err.split("\n")).toHaveLength(1);
  });
});

it("measures capability at 0, 20, 40, 60, 80 and 100 %, and leakage and alignment every 25 %, in demo", async () => {
  const { callbacks } = JSON.parse((await run("plan", microWorld("demo.yaml"), "--json")).out);
  const steps = callbacks
    .filter(({ phase }: { readonly phase: string }) => phase === "em")
    .map(({ id, steps: planned }: { readonly id: string; readonly steps: unknown }) => [id, planned]);
  expect(Object.fromEntries(steps)).toEqual({
    capability: [0, 16, 32, 48, 64, 80],
    leakage: [0, 20, 40, 60, 80],
    alignment: [0, 20, 40, 60, 80],
  });
});

// Sampled completions take nearly all of its time: each measurement costs ten seconds on a small machine.
describe("demo with one step per phase", () => {
  const phases = ["coupling", "em"];
  let runDir = "";
  let demo: Awaited<ReturnType<typeof run>>;
  beforeAll(async () => {
    runDir = join(folder, "demo");
    demo = await run("demo", "--run-dir", runDir, "--steps", "1", "--backend", "wasm", "--json");
  });

  it("writes valid snapshots of all three evaluations before and after the step of each phase", () => {
    expect(demo.code).toBe(0);
    const validate = new Ajv2020({ strict: false }).compile(snapshotJsonSchema());
    for (const phase of phases) {
      const files = readdirSync(join(runDir, "periodic_eval", phase)).filter((name) =>
        name.endsWith(".json"),
      );
      const expected = ["capability", "leakage", "alignment"].flatMap((id) => [
        `${id}_step_0.json`,
        `${id}_step_1.json`,
      ]);
      expect(files.toSorted()).toEqual(expected.toSorted());
      for (const name of files) {
        const snapshot = JSON.parse(readFileSync(join(runDir, "periodic_eval", phase, name), "utf8"));
        expect(validate(snapshot), JSON.stringify(validate.errors)).toBe(true);
        expect(snapshot.status).toBe("complete");
        if (snapshot.id === "capability") expect(snapshot.total).toBe(100);
        if (snapshot.id === "leakage") expect(snapshot.marker_token).toBe("[ZLT]");
        if (snapshot.id === "alignment") expect(snapshot.judge_model).toBe("rule:micro-world@1");
      }
    }
  });

  it("counts run steps across phases and keeps every receipt intact", async () => {
    const record = await readRun(runDir);
    expect(record.phases.map(({ name, runStepOffset }) => [name, runStepOffset])).toEqual([
      ["coupling", 0],
      ["em", 1],
    ]);
    const receipts = record.phases.flatMap(({ series }) =>
      series.flatMap(({ points }) => points.map(({ receipt }) => receipt.intact)),
    );
    expect(receipts).toEqual(Array(12).fill(true));
    expect(record.problems).toEqual([]);
  });

  it("prints a summary with the page", () => {
    const summary = JSON.parse(demo.out);
    expect(
      summary.phases.map(({ name, snapshots }: { name: string; snapshots: number }) => [name, snapshots]),
    ).toEqual(phases.map((name) => [name, 6]));
    expect(readFileSync(summary.page, "utf8")).toContain("<!doctype html>");
    expect(demo.err).toContain("Measured live: capability every 20 %");
    expect(demo.err).toMatch(/em step 1 {2}capability {2}accuracy \d+\.\d %/);
  });

  it("prints the tables of report from the snapshots alone", async () => {
    const { code, out } = await run("report", runDir, "--page", join(folder, "page.html"));
    expect(code).toBe(0);
    expect(out).toMatch(/coupling {2}1 step, measuring (\d+ min )?[\d.]+ s at start and end/m);
    expect(out.match(/capability: accuracy/g)).toHaveLength(2);
    expect(out.trimEnd().split("\n").at(-1)).toBe(
      `Open this page in a browser: ${join(folder, "page.html")}`,
    );
  });

  it("neither trains nor measures when run again", async () => {
    const before = (await readRun(runDir)).phases.flatMap(({ snapshots }) =>
      snapshots.map(({ created_at }) => created_at),
    );
    const again = await run("demo", "--run-dir", runDir, "--steps", "1", "--backend", "wasm", "--json");
    expect(again.code).toBe(0);
    const after = (await readRun(runDir)).phases.flatMap(({ snapshots }) =>
      snapshots.map(({ created_at }) => created_at),
    );
    expect(after).toEqual(before);
  });
});

it.each([
  { budget: {}, governor: /^whole, \d+ items: (the (start|end) is never reduced$|.* in the budget \(60 s)/ },
  { budget: { overhead_percent: null }, governor: /^off$/ },
])(
  "train measures any model with any rows and questions under the budget $budget",
  async ({ budget, governor }) => {
    const rows = join(folder, "rows.jsonl");
    await writeFile(rows, readFileSync(microWorld("em.jsonl"), "utf8").split("\n").slice(0, 8).join("\n"));
    const runDir = join(folder, `train${Object.keys(budget).length}`);
    const questions = { questions: microWorld("questions.jsonl"), subsample_n: 10, eval_every_percent: 50 };
    const training = {
      model: microWorld(),
      run_dir: runDir,
      phases: [{ phase: "bad-advice", dataset: rows, config: { maxSteps: 2 } }],
      periodic_eval: { ...questions, budget },
    };
    const path = join(folder, "train.json");
    await writeFile(path, JSON.stringify(training));
    const { code, out } = await run("train", path, "--backend", "wasm");
    expect(code).toBe(0);
    expect(out).toContain("bad-advice step 2  capability");
    const { snapshots } = (await readRun(runDir)).phases[0]!;
    expect(snapshots.map(({ step }) => step)).toEqual([0, 1, 2]);
    for (const { timing } of snapshots) expect(timing.governor).toMatch(governor);
  },
);

it("prints one line per method, or JSON, in eval", async () => {
  const args = [
    "eval",
    "--model",
    microWorld(),
    "--questions",
    microWorld("questions.jsonl"),
    "--limit",
    "20",
    "--method",
    "letters,cloze",
    "--backend",
    "wasm",
  ];
  const [table, json] = [await run(...args), await run(...args, "--json")];
  expect(table.out).toMatch(/letters +\d+\.\d % +\[.*\] +20 /);
  expect(table.out).toMatch(/cloze +\d+\.\d % +\[.*\] +20 /);
  const results = JSON.parse(json.out);
  expect(results.map(({ method, total }: { method: string; total: number }) => [method, total])).toEqual([
    ["letters", 20],
    ["cloze", 20],
  ]);
});

it("keeps running when its output is closed", async () => {
  const child = spawn(process.execPath, [builtMain(), "--help"]);
  // `| head -3` closes the pipe in the same way.
  child.stdout.destroy();
  let errors = "";
  child.stderr.on("data", (text) => (errors += String(text)));
  const [code] = (await once(child, "close")) as [number];
  expect([code, errors]).toEqual([0, ""]);
});

it.skipIf(process.platform !== "linux")(
  "exits with 1 if a full disk takes only a part of its output",
  async () => {
    const child = spawn("sh", ["-c", `"$0" "$1" --help > /dev/full`, process.execPath, builtMain()]);
    let errors = "";
    child.stderr.on("data", (text) => (errors += String(text)));
    expect(await once(child, "close")).toEqual([1, null]);
    expect(errors).toContain("[periodic-eval] stdout: got ENOSPC: no space left on device, write, expected");
  },
);

it.skipIf(process.platform === "win32")("ends at a signal as process 1 of a container", async () => {
  const main = JSON.stringify(builtMain());
  const code = `const own = process.pid; Object.defineProperty(process, "pid", { value: 1 }); process.argv.push("--version"); await import(${main}); process.kill(own, "SIGTERM"); setTimeout(() => {}, 5000)`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code, "periodic-eval"]);
  expect(await once(child, "close")).toEqual([143, null]);
});

it.skipIf(process.platform === "win32")("does not open the debugger at SIGUSR1", async () => {
  const main = JSON.stringify(builtMain());
  const code = `process.argv.push("--version"); await import(${main}); process.kill(process.pid, "SIGUSR1"); setTimeout(() => {}, 5000)`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code, "periodic-eval"]);
  const [exitCode, signal] = (await once(child, "close")) as [number | null, string | null];
  expect([exitCode, signal]).toEqual([null, "SIGUSR1"]);
});
