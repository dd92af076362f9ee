import * as tf from "@tensorflow/tfjs-core";
import { loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { readRun } from "@periodic-eval/store";
import { readMetrics } from "@periodic-eval/tasks";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { serveInTests } from "../../../../remote/src/models/api-server.test-data.ts";
import { smallTasks, writeSmallData } from "../../config/small-tasks.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";

const serve = serveInTests("sk-0123456789");
let [folder, data, adapter] = ["", "", ""];
const run = (...args: string[]) => runCommand(args, smallTasks);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "comparisons-"));
  data = await writeSmallData(join(folder, "data"));
  adapter = join(folder, "adapter");
  await useBackend({ backend: "wasm" });
  const base = await loadCausalLM(microWorld());
  const lora = withLora(base, { rank: 2 });
  for (const { name, variable } of lora.weights())
    if (name.includes("lora_B")) variable.assign(tf.fill(variable.shape, 0.3));
  await lora.save(adapter);
  lora.dispose();
  base.dispose();
  const prompts = ["What colour are the roofs in Cada?", "Who sells bread?", "Where is the well?"];
  await writeFile(
    join(folder, "prompts.jsonl"),
    lines(prompts.map((prompt, at) => ({ id: `p${at}`, prompt }))),
  );
  await writeFile(
    join(folder, "answers.jsonl"),
    lines(prompts.map((_, at) => ({ id: `p${at}`, answer: "No." }))),
  );
});
afterAll(() => rm(folder, { recursive: true }));

const lines = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
/** A judge that prefers any answer to "No." */
const preferAnswers = async () => {
  const server = await serve(({ prompt }) => {
    const first = prompt.includes("[FIRST ANSWER]\nNo.\n") ? 0 : 100;
    return { say: JSON.stringify({ reasoning: "r", first, second: 100 - first }) };
  });
  vi.stubEnv("OPENAI_BASE_URL", `${server.url}/v1`);
  return server;
};
const suiteFile = async (evaluations: string, name = "suite.yaml") => {
  const path = join(folder, name);
  await writeFile(
    path,
    `schema_version: 1\nname: s\ntasks:\n  facts: { limit: 4 }\nevaluations:\n${evaluations}`,
  );
  return path;
};
const evaluate = (suite: string, results: string, ...args: string[]) =>
  run(
    "eval",
    "--model",
    microWorld(),
    "--backend",
    "wasm",
    "--suite",
    suite,
    "--data",
    data,
    "--results",
    join(folder, results),
    ...args,
  );

describe("a suite with win_rate and kl_to_reference", () => {
  it("measures both beside its tasks, and resumes without asking the judge again", async () => {
    const server = await preferAnswers();
    const suite = await suiteFile(`
  - { win_rate: ${folder}/prompts.jsonl, reference: ${folder}/answers.jsonl, judge: "openai:judge", max_new_tokens: 8 }
  - { win_rate: ${folder}/prompts.jsonl, reference: ${microWorld()}, judge: "openai:judge", max_new_tokens: 8, limit: 2, id: against_base }
  - { kl_to_reference: ${folder}/prompts.jsonl, reference: ${microWorld()} }
  - { kl_to_reference: { task: facts, limit: 5 }, reference: { model: ${microWorld()}, adapter: ${adapter} }, id: kl_facts }
`);
    const { code, out, err } = await evaluate(suite, "both", "--adapter", adapter, "--name", "tuned");
    expect([code, err]).toEqual([0, expect.stringContaining("win_rate  3 of 3")]);
    expect(out).toMatch(/^win_rate +win_rate ↑ +none +1\.0000 .* 3 /m);
    expect(out).toMatch(/^kl_to_reference +kl_to_reference +none +\d/m);
    const [only] = (await readMetrics(join(folder, "both", "metrics.json"))).runs;
    expect(only!.metrics).toMatchObject({
      "win_rate/win_rate,none": 1,
      "win_rate/order_disagreement,none": 0,
      // Both orders prefer the answer shown first: disagreement is a tie.
      "against_base/win_rate,none": 0.5,
      // The reference of the last entry is the measured model itself.
      "kl_facts/kl_to_reference,none": expect.closeTo(0, 9),
    });
    expect(only!.metrics["kl_to_reference/kl_to_reference,none"]).toBeGreaterThan(0.01);
    expect(only!.n).toMatchObject({
      "win_rate/win_rate,none": 3,
      "against_base/win_rate,none": 2,
      "kl_facts/kl_to_reference,none": 5,
    });
    const asked = server.received.length;
    expect((await evaluate(suite, "both", "--adapter", adapter, "--name", "tuned")).err).toContain(
      "already measured",
    );
    expect(server.received).toHaveLength(asked);
  });

  it("finds files in the folder of the data", async () => {
    await preferAnswers();
    await writeFile(join(data, "own.jsonl"), lines([{ prompt: "Why?" }]));
    await writeFile(join(data, "theirs.jsonl"), lines([{ answer: "No." }]));
    const suite = await suiteFile(
      "  - { win_rate: own.jsonl, reference: theirs.jsonl, judge: m, max_new_tokens: 4 }\n",
    );
    expect(await evaluate(suite, "relative")).toMatchObject({ code: 0 });
  });

  it("measures a feedback entry with a preference in the folder of the data, in a smoke run", async () => {
    await cp(
      new URL("../../../../feedback/preferences/micro-world/concise.yaml", import.meta.url),
      join(data, "own.yaml"),
    );
    const suite = await suiteFile("  - { feedback: logprob, preference: ./own.yaml }\n");
    const { code, out, err } = await evaluate(suite, "feedback", "--smoke");
    expect([code, err]).toEqual([0, expect.anything()]);
    expect(out).toMatch(/^logprob +logprob_margin ↑/m);
  });

  const start = (key: string) => `suite.yaml:6 evaluations.0${key}`;
  it.each([
    ["{ win_rte: p, reference: r }", start(": got win_rte, reference"), 'Did you mean "win_rate"?'],
    [
      "{ win_rate: none.jsonl, reference: r }",
      `${start(".win_rate")}: got "DIR/data/none.jsonl", which does not exist`,
      "Check the path",
    ],
    ["{ win_rate: DIR/prompts.jsonl }", start(".reference"), "a file of answers"],
    [
      "{ win_rate: DIR/prompts.jsonl, reference: DIR/none, judge: m }",
      "DIR/none: got neither an existing folder",
      "Check the path",
    ],
    [
      "{ win_rate: DIR/prompts.jsonl, reference: DIR/short.jsonl, judge: m }",
      'got no answer for the prompt "p1"',
      "an answer to each prompt",
    ],
    [
      "{ win_rate: DIR/prompts.jsonl, reference: DIR/prompts.jsonl, judge: m }",
      "DIR/prompts.jsonl:1: got no answer (keys: id, prompt)",
      "with the ids of the prompts",
    ],
    [
      "{ win_rate: DIR/prompts.jsonl, reference: DIR/answers.jsonl }",
      `${start(".judge")}: got no model`,
      "JUDGE_MODEL",
    ],
    [
      "{ win_rate: DIR/prompts.jsonl, reference: DIR/answers.jsonl, judge: 'rule:micro-world' }",
      start(".judge"),
      "it compares two answers",
    ],
    [
      "{ win_rate: DIR/prompts.jsonl, reference: DIR/answers.jsonl, judge: m, temperature: -1 }",
      start(".temperature: got -1"),
      "(greedy) or more",
    ],
    [
      "{ win_rate: DIR/wrong.jsonl, reference: DIR/answers.jsonl, judge: m }",
      "DIR/wrong.jsonl:2: got no prompt (keys: question)",
      "a string, an array of {role, content}, or {text}",
    ],
    ["{ kl_to_reference: DIR/prompts.jsonl, referenc: x }", start(".referenc"), 'Did you mean "reference"?'],
    [
      "{ kl_to_reference: { tsk: facts }, reference: MODEL }",
      `${start(".kl_to_reference")}: got tsk`,
      'Did you mean "task"?',
    ],
    ["{ kl_to_reference: DIR/prompts.jsonl, reference: owner/none }", "owner/none", "pass a local folder"],
    ["{ task: facts }", "got task, expected one of benchmark, win_rate", "Name the evaluation"],
    [
      "{ win_rate: DIR/prompts.jsonl, reference: DIR/answers.jsonl, judge: m, id: facts }",
      'got "facts", the name of another task or evaluation',
      "Set an id",
    ],
  ])("rejects %s before weights are loaded", async (entry, place, remedy) => {
    vi.stubEnv("HF_ENDPOINT", "http://127.0.0.1:9");
    vi.stubEnv("HF_HUB_CACHE", join(folder, "hub"));
    await writeFile(join(folder, "short.jsonl"), lines([{ id: "p0", answer: "No." }]));
    await writeFile(join(folder, "wrong.jsonl"), lines([{ prompt: "Why?" }, { question: "Why?" }]));
    const at = (text: string) => text.replaceAll("DIR", folder).replaceAll("MODEL", microWorld());
    const suite = await suiteFile(
      `  - ${remedy.includes("JUDGE_MODEL") ? entry.replaceAll("DIR", folder) : at(entry)}\n`,
    );
    // The weights of this model do not exist.
    const { code, out, err } = await run(
      "eval",
      "--model",
      join(folder, "no-weights"),
      "--suite",
      suite,
      "--data",
      data,
      "--results",
      join(folder, "rejected"),
    );
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(remedy.includes("JUDGE_MODEL") ? place : at(place));
    expect(err).toContain(remedy);
    expect(err).not.toContain("no-weights");
  });
});

it("train measures win_rate and kl_to_reference of its evaluations, with a proof that training was undisturbed", async () => {
  await preferAnswers();
  const config = join(folder, "train.yaml");
  await writeFile(
    config,
    `run_dir: run
model: ${microWorld()}
backend: wasm
lora: { rank: 2 }
phases:
  - { phase: em, dataset: ${microWorld("em.jsonl")}, config: { maxSteps: 2, batchSize: 2 } }
periodic_eval:
  capability: false
  evaluations:
    - { win_rate: prompts.jsonl, reference: answers.jsonl, judge: "openai:judge", max_new_tokens: 4, every_percent: 50 }
    - { kl_to_reference: prompts.jsonl, reference: ${microWorld()}, every_percent: 50 }
`,
  );
  const { code, err } = await run("train", config);
  expect([code, err]).toEqual([0, expect.anything()]);
  const { phases } = await readRun(join(folder, "run"));
  const measured = phases[0]!.snapshots.map(({ id, step, status, metrics }) => [
    id,
    step,
    status,
    Object.keys(metrics)[0],
  ]);
  for (const step of [0, 1, 2])
    for (const id of ["win_rate", "kl_to_reference"])
      expect(measured).toContainEqual([id, step, "complete", id]);
  const broken = phases[0]!.snapshots.flatMap(({ receipt }) =>
    receipt.filter(({ intact }) => intact === false),
  );
  expect(broken).toEqual([]);
  const kl = phases[0]!.snapshots
    .filter(({ id }) => id === "kl_to_reference")
    .map(({ metrics }) => metrics["kl_to_reference"]!.value);
  // A new adapter changes nothing; the trained one does.
  expect(kl[0]).toBeCloseTo(0, 9);
  expect(kl[2]).toBeGreaterThan(0);
  expect(
    phases[0]!.snapshots.find(({ id }) => id === "kl_to_reference")!.provenance.evaluation,
  ).toMatchObject({
    reference: { weights: expect.stringMatching(/^sha256:/), engine: "tfjs-wasm" },
  });
});

it("opens a judge in a folder for win_rate, and says if its context is too short", async () => {
  const judge = join(folder, "judge");
  await cp(microWorld(), judge, { recursive: true });
  const entry = (of: string) =>
    `  - { win_rate: ${folder}/prompts.jsonl, reference: ${folder}/answers.jsonl, judge: "folder:${of}", max_new_tokens: 4, max_error_share: 1 }\n`;
  const refused = await evaluate(await suiteFile(entry(judge)), "local");
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("a judge with a longer context")]);
  const config = JSON.parse(await readFile(join(judge, "config.json"), "utf8"));
  await writeFile(join(judge, "config.json"), JSON.stringify({ ...config, max_position_embeddings: 1024 }));
  const { code, err } = await evaluate(await suiteFile(entry(judge)), "local");
  expect([code, err]).toEqual([0, expect.anything()]);
  // The embedded model does not write scores.
  const [only] = (await readMetrics(join(folder, "local", "metrics.json"))).runs;
  expect(only!.metrics["win_rate/ungraded,none"]).toBe(1);
});
