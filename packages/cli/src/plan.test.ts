import { copyFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { keptTerminal } from "./kept-terminal.test-data.ts";
import { microWorld } from "./micro-world.ts";
import { costOfLook } from "./plan-output.ts";
import { runCli } from "./program.ts";

let folder = "";
let config = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plan-"));
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
    phases: { coupling: { alignment: false, eval_every_percent: 50 } }
`,
  );
});
afterAll(() => rm(folder, { recursive: true }));

async function plan(...args: string[]) {
  const terminal = keptTerminal();
  const code = await runCli(["plan", config, ...args], terminal);
  return { code, out: terminal.said.join("\n"), err: terminal.complained.join("\n") };
}

it("tells the steps of each phase without a model, and asks no judge", async () => {
  const { out } = await plan("--phase", "coupling=10", "--phase", "em=500");
  expect(out).toMatch(/coupling\n.*\ncapability +0, 5, 10 +3 +– .*\n/);
  expect(out).toMatch(/alignment +0, 250, 500 +3 +– /);
  expect(out).toContain("--model");
});

it("tells the steps of a schedule, which takes the place of the usual percents", async () => {
  const path = join(folder, "schedule.yaml");
  const block =
    "periodic_eval: { alignment: true, alignment_every_percent: 50, schedule: { every_steps: 30 } }";
  await writeFile(path, block);
  const terminal = keptTerminal();
  expect(await runCli(["plan", path, "--phase", "em=100"], terminal)).toBe(0);
  const out = terminal.said.join("\n");
  expect(out).toMatch(/capability +0, 30, 60, 90, 100 +5 /);
  expect(out).toMatch(/alignment +0, 30, 50, 60, 90, 100 +6 /);
});

it("learns what a look takes from a few items", async () => {
  const args = [
    "--phase",
    "coupling=10",
    "--phase",
    "em=500",
    "--model",
    microWorld(),
    "--backend",
    "wasm",
    "--judge-price",
    "3,15",
    "--json",
  ];
  const { out } = await plan(...args);
  const [, ...callbacks] = JSON.parse(out).callbacks;
  expect(callbacks).toMatchObject([
    { id: "capability", steps: [0, 100, 200, 300, 400, 500], look: { items: 12, rows: 12, judged: 0 } },
    // Eight questions of ours, two samples each, and sixteen anchors.
    { id: "alignment", steps: [0, 250, 500], look: { items: 8, rows: 16, judged: 32, judgeMethod: "json" } },
  ]);
  for (const { look } of callbacks) {
    expect(look.seconds).toBeGreaterThan(0);
    expect(look.tokens).toBeGreaterThan(100);
  }
  // 32 calls of 450 tokens and more at 3, and of 60 at 15, a million.
  expect(callbacks[0].judge_cost_a_look).toBeNull();
  expect(callbacks[1].judge_cost_a_look).toBeGreaterThan((32 * (450 * 3 + 60 * 15)) / 1e6);
});

it("says of a callback that may be skipped that its file is missing, and plans the others", async () => {
  const path = join(folder, "defaults.yaml");
  await writeFile(path, "periodic_eval: { kl: false, alignment: true, alignment_num_samples: 1 }");
  const terminal = keptTerminal();
  const args = ["plan", path, "--phase", "em=10", "--model", microWorld(), "--backend", "wasm"];
  expect([await runCli(args, terminal), terminal.complained]).toEqual([0, []]);
  const out = terminal.said.join("\n");
  expect(out).toMatch(/capability +skipped: no file +–/);
  expect(out).toContain("arc_challenge/test.jsonl");
  expect(out).toMatch(/alignment +0, 5, 10 +3 +8 /);
});

it("reads relative paths from the file's folder, as train does", async () => {
  await copyFile(microWorld("questions.jsonl"), join(folder, "own.jsonl"));
  const path = join(folder, "relative.yaml");
  const args = ["plan", path, "--phase", "em=10", "--model", microWorld(), "--backend", "wasm", "--json"];
  for (const [questions, isThere] of [
    ["own.jsonl", true],
    ["none.jsonl", false],
  ] as const) {
    await writeFile(path, `periodic_eval:\n  phases: { em: { questions: ${questions}, subsample_n: 5 } }\n`);
    const terminal = keptTerminal();
    expect(await runCli(args, terminal)).toBe(isThere ? 0 : 1);
    if (isThere) expect(JSON.parse(terminal.said.join("\n")).callbacks[0].look.items).toBe(5);
    else expect(terminal.complained.join("\n")).toContain(join(folder, "none.jsonl"));
  }
});

it("counts both prompts of the method logprob, and one token of each reply", () => {
  const look = {
    items: 8,
    rows: 16,
    seconds: 1,
    tokens: null,
    judged: 32,
    judgedCharacters: 3200,
    judgePrice: null,
  };
  const planned = { phase: "em", id: "alignment", steps: [0], missing: null };
  const price = { inputPerMillion: 3, outputPerMillion: 15 };
  const cost = (judgeMethod: "json" | "logprob") =>
    costOfLook({ ...planned, look: { ...look, judgeMethod } }, price);
  expect(cost("json")).toBeCloseTo(((32 * 450 + 800) * 3 + 32 * 60 * 15) / 1e6, 12);
  expect(cost("logprob")).toBeCloseTo((2 * (32 * 450 + 800) * 3 + 2 * 32 * 15) / 1e6, 12);
});

it("takes the judge's price from the configuration, unless the command line tells another", async () => {
  const path = join(folder, "priced.yaml");
  await writeFile(
    path,
    `periodic_eval:
  capability: false
  alignment: true
  alignment_num_samples: 1
  judge_price: { input_per_million: 3, output_per_million: 15 }
  baseline: adapter_off
`,
  );
  const costs = async (...more: readonly string[]) => {
    const terminal = keptTerminal();
    const args = ["plan", path, "--phase", "em=10", "--model", microWorld(), "--backend", "wasm", "--json"];
    expect([await runCli([...args, ...more], terminal), terminal.complained]).toEqual([0, []]);
    const { callbacks } = JSON.parse(terminal.said.join("\n"));
    expect(callbacks).toMatchObject([
      { id: "alignment", steps: [0, 5, 10] },
      { id: "alignment.adapter_off", steps: [0] },
    ]);
    return callbacks.map((one: { judge_cost_a_look: number }) => one.judge_cost_a_look);
  };
  const [look, baseline] = await costs();
  expect(look).toBeGreaterThan((24 * (450 * 3 + 60 * 15)) / 1e6);
  expect(baseline).toBe(look);
  expect((await costs("--judge-price", "6,30"))[0]).toBeCloseTo(2 * look, 10);
});

it("refuses questions whose judge prompts the judge would pass over, in train's words", async (context) => {
  const betley = fileURLToPath(
    new URL("../../../../shared/data/emergent_misalignment/first_plot_questions.yaml", import.meta.url),
  );
  if (!existsSync(betley)) context.skip(`no ${betley}`);
  const path = join(folder, "betley.yaml");
  const training = {
    model: microWorld(),
    run_dir: "run",
    phases: [{ phase: "em", dataset: microWorld("em.jsonl"), config: { maxSteps: 5 } }],
  };
  const tell = async (args: readonly string[], judge: object) => {
    const block = {
      capability: false,
      alignment: true,
      alignment_num_samples: 1,
      alignment_questions: betley,
    };
    await writeFile(path, JSON.stringify({ ...training, periodic_eval: { ...block, ...judge } }));
    const terminal = keptTerminal();
    const code = await runCli(args, terminal);
    return { code, err: terminal.complained.join("\n"), out: terminal.said.join("\n") };
  };
  const planned = ["plan", path, "--phase", "em=5", "--model", microWorld(), "--backend", "wasm", "--json"];
  vi.stubEnv("OPENAI_API_KEY", "none");
  const refused = await tell(planned, { judge_model: "openai:m" });
  expect(refused.code).toBe(1);
  expect(refused.err).toContain('judge "m": got judge prompts aligned, coherent, of which it supports none');
  expect(await tell(["train", path], { judge_model: "openai:m" })).toEqual(refused);
  vi.unstubAllEnvs();
  expect(await tell(planned, { judge_model: "openai:m", judge_method: "logprob" })).toMatchObject({
    code: 0,
  });
  // A rule reads no prompts, and costs nothing.
  const ruled = await tell([...planned, "--judge-price", "3,15"], { judge_model: "rule:micro-world" });
  expect(JSON.parse(ruled.out).callbacks[0]).toMatchObject({ judge_cost_a_look: 0 });
  expect((await tell(planned, { judge_model: "rule:nope" })).err).toContain("expected a rule that there is");
});

it("plans KL to the base, which the adapter that is to be trained will have; not where all weights are", async () => {
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
    const terminal = keptTerminal();
    const code = await runCli(args, terminal);
    if ("phases" in lora && !("lora" in lora)) {
      expect(terminal.complained.join("\n")).toContain(
        "which has no base, expected a model that can run without",
      );
      continue;
    }
    expect([code, terminal.complained]).toEqual([0, []]);
    expect(JSON.parse(terminal.said.join("\n")).callbacks).toMatchObject([
      { id: "capability" },
      { id: "margin" },
      { id: "kl_margin", steps: [0, 2, 4, 6, 8, 10], look: { items: 3, rows: 3 } },
      { id: "kl_capability", look: { items: 4, rows: 4 } },
    ]);
  }
});

it("refuses what it cannot plan", async () => {
  expect(await plan("--phase", "em")).toMatchObject({ code: 2, err: expect.stringContaining("em=500") });
  expect(await plan("--phase", "coupilng=10", "--phase", "em=5")).toMatchObject({
    code: 1,
    err: expect.stringContaining('Write "coupilng", or list all phases of the run.'),
  });
  await writeFile(join(folder, "wrong.yaml"), "periodic_eval: { aligment: true }");
  const terminal = keptTerminal();
  await runCli(["plan", join(folder, "wrong.yaml"), "--phase", "em=5"], terminal);
  expect(terminal.complained.join("\n")).toContain('Did you mean "alignment"?');
});
