import { copyFile, readFile, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { authorsFile, serveQuestions } from "../../../../data/src/questions/published-questions.test-data.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCli } from "../../program.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let config = "";
beforeAll(async () => {
  config = join(folder, "run.yaml");
  const questions = JSON.stringify(microWorld("questions.jsonl"));
  await writeFile(
    config,
    `eval:
  periodic_eval:
    questions: ${questions}
    subsample_n: 12
    alignment: true
    alignment_num_samples: 2
    budget: { grace_seconds: 0 }
    phases: { coupling: { alignment: false, eval_every_percent: 50 } }
`,
  );
});

function plan(...args: string[]) {
  return runCommand(["plan", config, ...args]);
}

it("prints the steps of each phase without a model or a judge", async () => {
  const { out } = await plan("--phase", "coupling=10", "--phase", "em=500");
  expect(out).toMatch(/coupling\n.*\ncapability +0, 5, 10 +3 +– .*\n/);
  expect(out).toMatch(/alignment +0, 250, 500 +3 +– /);
  expect(out).toContain("--model");
});

it("prints the steps of a schedule, which replaces the default percents", async () => {
  const path = join(folder, "schedule.yaml");
  const block =
    "periodic_eval: { alignment: true, alignment_every_percent: 50, schedule: { every_steps: 30 } }";
  await writeFile(path, block);
  const terminal = recordingTerminal();
  expect(await runCli(["plan", path, "--phase", "em=100"], terminal)).toBe(0);
  const out = terminal.outputs.join("\n");
  expect(out).toMatch(/capability +0, 30, 60, 90, 100 +5 /);
  expect(out).toMatch(/alignment +0, 30, 50, 60, 90, 100 +6 /);
});

it("rejects overrides of a phase without a --phase", async () => {
  const { code, err } = await runCommand(["plan", config, "--phase", "em=500"]);
  expect(code).toBe(1);
  expect(err).toMatch(/periodic_eval\.phases\.coupling: got "coupling", expected a phase of the run: "em"/);
});

it("estimates the cost of a measurement from a few items", async () => {
  const args = [
    "--phase",
    "coupling=10",
    "--phase",
    "em=500",
    "--model",
    microWorld(),
    "--backend",
    "wasm",
    "--json",
  ];
  const { out } = await plan(...args);
  const { callbacks: planned, stepTimes } = JSON.parse(out);
  const [, ...callbacks] = planned;
  expect(stepTimes.em).toMatch(
    /^all measurements take [\d.]+ s. They stay under 20 % overhead if a step takes at least [\d.e-]+ s; without \w+, at least [\d.e-]+ s; with faster steps, measurements between start and end have fewer items or are skipped$/,
  );
  expect(callbacks).toMatchObject([
    {
      id: "capability",
      steps: [0, 100, 200, 300, 400, 500],
      measurement: { items: 12, rows: 12, judged: 0 },
    },
    // The eight questions of the package, two samples each, and sixteen anchors.
    {
      id: "alignment",
      steps: [0, 250, 500],
      measurement: { items: 8, rows: 16, judged: 32 },
    },
  ]);
  for (const { measurement } of callbacks) {
    expect(measurement.seconds).toBeGreaterThan(0);
    expect(measurement.tokens).toBeGreaterThan(100);
  }
});

it.each([
  ["", 0],
  ["capability: true, ", 1],
])(
  "reports, before weights are loaded, that the default questions cannot be downloaded: %s",
  async (capability, code) => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    vi.stubEnv("HF_HUB_CACHE", join(folder, "cache"));
    const path = join(folder, "defaults.yaml");
    await writeFile(
      path,
      `periodic_eval: { ${capability}kl: false, alignment: true, alignment_num_samples: 1 }`,
    );
    const terminal = recordingTerminal();
    const args = ["plan", path, "--phase", "em=10", "--model", microWorld(), "--backend", "wasm"];
    // Capability that is only on by default would be disabled.
    expect(await runCli(args, terminal)).toBe(code);
    expect(terminal.outputs.join("\n").includes("alignment")).toBe(code === 0);
    expect(terminal.errors.join("\n")).toContain("periodic-eval data get arc_challenge");
  },
);

const training = `model: ${microWorld()}
run_dir: none
config: { batchSize: 4, gradientAccumulation: 2 }
periodic_eval: { questions: ${microWorld("questions.jsonl")}, subsample_n: 4, eval_every_percent: 50 }
phases:
  - { phase: first, dataset: rows.jsonl, config: { maxSteps: 30 } }
  - { phase: second, dataset: rows.jsonl, config: { epochs: 2, validationShare: 0.25 } }
`;

async function planTraining(text: string, ...args: string[]) {
  const path = join(folder, "train.yaml");
  const rows = (await readFile(microWorld("em.jsonl"), "utf8")).split("\n").slice(0, 40);
  await writeFile(join(folder, "rows.jsonl"), rows.join("\n"));
  await writeFile(path, text);
  const terminal = recordingTerminal();
  const code = await runCli(["plan", path, ...args], terminal);
  return { code, out: terminal.outputs.join("\n"), err: terminal.errors.join("\n") };
}

it("takes the phases and their steps from a training file, as its trainers count them", async () => {
  // 40 rows, of which 30 are trained on: ⌈30 ÷ 4⌉ = 8 batches are 4 steps, twice.
  const { code, out } = await planTraining(training);
  expect(code).toBe(0);
  expect(out).toMatch(/first\n.*\ncapability +0, 15, 30 +3 /);
  expect(out).toMatch(/second\n.*\ncapability +0, 4, 8 +3 /);
  expect(existsSync(join(folder, "none"))).toBe(false);
  const overridden = await planTraining(training, "--phase", "second=100");
  expect(overridden.out).toMatch(/second\n.*\ncapability +0, 50, 100 /);
  expect(overridden.out).not.toContain("first");
});

it("measures the cost on the model of a training file", async () => {
  const { out } = await planTraining(training, "--json", "--model");
  expect(JSON.parse(out).callbacks[0].measurement).toMatchObject({ items: 4 });
});

it("says that a training file without a block measures nothing", async () => {
  const { code, out, err } = await planTraining(training.replace(/periodic_eval.*\n/, ""));
  expect([code, out]).toEqual([0, ""]);
  expect(err).toMatch(/train\.yaml has no periodic_eval block: nothing is measured\./);
});

it("names file and line of a wrong training file, and the options that a file of a block lacks", async () => {
  const missing = await planTraining(training.replace("epochs: 2", "epochs: 0"));
  expect(missing.code).toBe(1);
  expect(missing.err).toContain("train.yaml:7 phases.1.config.epochs");
  const noRows = await planTraining(training.replaceAll("rows.jsonl", "none.jsonl"));
  expect(noRows.err).toMatch(/train\.yaml:7 phases\.1\.dataset.*none\.jsonl/);
  for (const args of [[], ["--phase", "em=5", "--model"]]) {
    const { code, err } = await planTraining("periodic_eval: {}", ...args);
    expect([code, err]).toEqual([2, expect.stringContaining(args.length === 0 ? "--phase" : "--model")]);
  }
});

it("resolves relative paths in the file's folder, as train does", async () => {
  await copyFile(microWorld("questions.jsonl"), join(folder, "own.jsonl"));
  const path = join(folder, "relative.yaml");
  const args = ["plan", path, "--phase", "em=10", "--model", microWorld(), "--backend", "wasm", "--json"];
  for (const [questions, isThere] of [
    ["own.jsonl", true],
    ["none.jsonl", false],
  ] as const) {
    await writeFile(path, `periodic_eval:\n  phases: { em: { questions: ${questions}, subsample_n: 5 } }\n`);
    const terminal = recordingTerminal();
    expect(await runCli(args, terminal)).toBe(isThere ? 0 : 1);
    if (isThere) expect(JSON.parse(terminal.outputs.join("\n")).callbacks[0].measurement.items).toBe(5);
    else expect(terminal.errors.join("\n")).toContain(join(folder, "none.jsonl"));
  }
});

it("plans the measurement without the adapter", async () => {
  const path = join(folder, "adapter-off.yaml");
  await writeFile(
    path,
    `periodic_eval:
  capability: false
  alignment: true
  alignment_num_samples: 1
  baseline: adapter_off
`,
  );
  const terminal = recordingTerminal();
  const args = ["plan", path, "--phase", "em=10", "--model", microWorld(), "--backend", "wasm", "--json"];
  expect([await runCli(args, terminal), terminal.errors]).toEqual([0, []]);
  const { callbacks } = JSON.parse(terminal.outputs.join("\n"));
  expect(callbacks).toMatchObject([
    { id: "alignment", steps: [0, 5, 10] },
    { id: "alignment.adapter_off", steps: [0] },
  ]);
  expect(callbacks[1].measurement).toEqual(callbacks[0].measurement);
});

it("counts the answers that both judges grade", async () => {
  const path = join(folder, "two-judges.yaml");
  const alignment = { alignment: true, alignment_num_samples: 2 };
  const judged = async (judges: object, block: object = alignment) => {
    await writeFile(path, JSON.stringify({ periodic_eval: { capability: false, ...block, ...judges } }));
    const args = ["plan", path, "--phase", "em=10", "--model", microWorld(), "--backend", "wasm", "--json"];
    const { out } = await runCommand(args);
    return JSON.parse(out).callbacks[0].measurement.judged;
  };
  expect(await judged({ judge_model: "openai:a" })).toBe(32);
  // The anchors are the first judge's.
  expect(await judged({ judge_models: ["openai:a", "openai:b"] })).toBe(48);
  const questions = join(folder, "refusal.csv");
  await writeFile(questions, `prompt,label\n${"Why?,safe\nHow?,unsafe\n".repeat(3)}`);
  expect(await judged({}, { refusal: { questions, judge_model: "openai:a" } })).toBe(6);
  expect(await judged({}, { refusal: { questions } })).toBe(0);
});

it("rejects questions whose judge prompts the judge ignores, with the error of train", async (context) => {
  const betley = fileURLToPath(
    new URL("../../../../../../shared/data/emergent_misalignment/first_plot_questions.yaml", import.meta.url),
  );
  if (!existsSync(betley)) context.skip(`no ${betley}`);
  const path = join(folder, "betley.yaml");
  const training = {
    model: microWorld(),
    run_dir: "run",
    phases: [{ phase: "em", dataset: microWorld("em.jsonl"), config: { maxSteps: 5 } }],
  };
  const runWith = async (args: readonly string[], judge: object) => {
    const block = {
      capability: false,
      alignment: true,
      alignment_num_samples: 1,
      alignment_questions: betley,
    };
    await writeFile(path, JSON.stringify({ ...training, periodic_eval: { ...block, ...judge } }));
    const terminal = recordingTerminal();
    const code = await runCli(args, terminal);
    return { code, err: terminal.errors.join("\n"), out: terminal.outputs.join("\n") };
  };
  const planned = ["plan", path, "--phase", "em=5", "--model", microWorld(), "--backend", "wasm", "--json"];
  vi.stubEnv("OPENAI_API_KEY", "none");
  const refused = await runWith(planned, { judge_model: "openai:m" });
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('judge "m": got judge prompts aligned, coherent, of which it supports none');
  expect(await runWith(["train", path], { judge_model: "openai:m" })).toEqual(refused);
  vi.unstubAllEnvs();
  expect(await runWith(planned, { judge_model: "openai:m", judge_method: "logprob" })).toMatchObject({
    code: 0,
  });
  // A rule uses no prompts.
  expect(await runWith(planned, { judge_model: "rule:micro-world" })).toMatchObject({ code: 0 });
  expect((await runWith(planned, { judge_model: "rule:nope" })).err).toContain("expected a known rule");
});

it("asks Betley et al.'s questions by name: in the file, in an override, and refused with its place", async () => {
  const authors = authorsFile();
  const github = await serveQuestions(authors ?? "");
  const path = join(folder, "published.yaml");
  const block = { capability: false, alignment: true, alignment_num_samples: 1, judge_model: "openai:m" };
  const phases = [{ phase: "em", dataset: microWorld("em.jsonl"), config: { maxSteps: 5 } }];
  const training = { model: microWorld(), run_dir: "run", phases };
  const write = (questions: object) =>
    writeFile(path, JSON.stringify({ ...training, periodic_eval: { ...block, ...questions } }, null, 1));
  vi.stubEnv("OPENAI_API_KEY", "none");
  vi.stubEnv("HF_HUB_CACHE", join(folder, "cache"));
  vi.stubEnv("GITHUB_RAW_ENDPOINT", github.url);
  await write({ alignment_questions: "betley2025" });
  const train = (...overrides: readonly string[]) => runCommand(["train", path, ...overrides]);
  // Offline, as in every test.
  const offline = await train();
  expect([offline.code, github.requests]).toEqual([1, []]);
  expect(offline.err).toContain(`${path}:`);
  expect(offline.err).toContain("alignment_questions");
  expect(offline.err).toContain("HF_HUB_OFFLINE, but betley2025 is not in the cache");
  if (authors !== null) {
    vi.stubEnv("HF_HUB_OFFLINE", "");
    const refused = await train();
    expect(refused.err).toContain(
      'judge "m": got judge prompts aligned, coherent, of which it supports none',
    );
    await write({});
    expect(await train("periodic_eval.alignment_questions=betley2025")).toEqual(refused);
    expect(github.requests).toHaveLength(1);
  }
  vi.unstubAllEnvs();
  await github.close();
});

it("plans the block of docs/guides/judges.md", async () => {
  const page = await readFile(new URL("../../../../../docs/guides/judges.md", import.meta.url), "utf8");
  const path = join(folder, "judges.yaml");
  await writeFile(path, /```yaml\n(periodic_eval:[^]*?)```/.exec(page)![1]!);
  const { code, out, err } = await runCommand(["plan", path, "--phase", "em=100"]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/alignment +0, 50, 100 +3 /);
});

it("plans KL to the base when an adapter is trained, and rejects it when all weights are trained", async () => {
  const path = join(folder, "kl.yaml");
  const probes = join(folder, "probes.json");
  await writeFile(probes, JSON.stringify({ good: { affirm: ["Yes."], negate: ["No.", "Never."] } }));
  const block = {
    questions: microWorld("questions.jsonl"),
    subsample_n: 4,
    margin: probes,
    kl: ["margin", "capability"],
  };
  const phases = [{ phase: "em", dataset: microWorld("em.jsonl") }];
  const args = ["plan", path, "--phase", "em=10", "--model", microWorld(), "--backend", "wasm", "--json"];
  for (const lora of [{ lora: { rank: 2 }, phases }, { phases }, {}]) {
    await writeFile(path, JSON.stringify({ ...lora, periodic_eval: block }));
    const terminal = recordingTerminal();
    const code = await runCli(args, terminal);
    if ("phases" in lora && !("lora" in lora)) {
      expect(terminal.errors.join("\n")).toContain(
        "which has no base, expected a model that can run without",
      );
      continue;
    }
    expect([code, terminal.errors]).toEqual([0, []]);
    expect(JSON.parse(terminal.outputs.join("\n")).callbacks).toMatchObject([
      { id: "capability" },
      { id: "margin" },
      { id: "kl_margin", steps: [0, 2, 4, 6, 8, 10], measurement: { items: 3, rows: 3 } },
      { id: "kl_capability", measurement: { items: 4, rows: 4 } },
    ]);
  }
});

it("rejects invalid phases and unknown keys", async () => {
  expect(await plan("--phase", "em")).toMatchObject({ code: 2, err: expect.stringContaining("em=500") });
  expect(await plan("--phase", "coupilng=10", "--phase", "em=5")).toMatchObject({
    code: 1,
    err: expect.stringContaining('Write "coupilng", or list all phases of the run.'),
  });
  await writeFile(join(folder, "wrong.yaml"), "periodic_eval: { aligment: true }");
  const terminal = recordingTerminal();
  await runCli(["plan", join(folder, "wrong.yaml"), "--phase", "em=5"], terminal);
  expect(terminal.errors.join("\n")).toContain('Did you mean "alignment"?');
});

it.each([
  ["eval_every_percent: 1.0e-9", "block.yaml:2 periodic_eval.eval_every_percent: got 1e-9, expected"],
  [
    "schedule: { every_seconds: 1.0e-9 }",
    "block.yaml:2 periodic_eval.schedule.every_seconds: got 1e-9, expected",
  ],
  [
    "schedule: { times_per_phase: 1000000000 }",
    "periodic_eval.schedule.times_per_phase: got 1000000000, expected",
  ],
])("refuses a schedule with millions of measurements a phase: %s", async (line, message) => {
  const path = join(folder, "block.yaml");
  await writeFile(path, `periodic_eval:\n  ${line}\n`);
  const { code, err } = await runCommand(["plan", path, "--phase", "em=500"]);
  expect([code, err]).toEqual([1, expect.stringContaining(message)]);
});
