import { loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { readMetrics } from "@periodic-eval/tasks";
import { readRun } from "@periodic-eval/store";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { blocksOf, runCode, runCommand, runCommands, withReplacements } from "./doc-blocks.test-data.ts";
import { microWorld } from "./micro-world/paths.ts";
import { temporaryFolder } from "../packages/testing/src/temporary-folder.test-data.ts";

const blocks = (language: string) => blocksOf("docs/guides/benchmarks.md", language);
const commands = blocks("sh")
  .find((text) => text.includes("--model path/to/model --tasks"))!
  .trim()
  .split("\n");
const suite = withReplacements(
  blocks("yaml").find((text) => text.includes("name: small"))!,
  {
    "limit: 200": "limit: 20",
  },
);

/** Contains the files that the page mentions: the embedded model, an adapter, and a few documents per task. */
const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  const model = join(folder, "path/to/model");
  await cp(microWorld(), model, { recursive: true });
  // GSM8K's answers are longer than the embedded model's context.
  const config = JSON.parse(await readFile(microWorld("config.json"), "utf8")) as object;
  await writeFile(join(model, "config.json"), JSON.stringify({ ...config, max_position_embeddings: 1024 }));
  await useBackend({ backend: "wasm" });
  const base = await loadCausalLM(model);
  const lora = withLora(base, { rank: 2 });
  await lora.save(join(folder, "path/to/adapter"));
  lora.dispose();
  base.dispose();
  const rows = (make: (at: number) => object) =>
    Array.from({ length: 20 }, (_, at) => `${JSON.stringify(make(at))}\n`).join("");
  const sums = rows((at) => ({ question: `${at} and 1?`, answer: `It is ${at + 1}.\n#### ${at + 1}` }));
  const files = {
    "suite.yaml": suite,
    "data/arc_challenge/test.jsonl": await readFile(microWorld("questions.jsonl"), "utf8"),
    "data/truthfulqa/validation.jsonl": rows((at) => ({
      question: `Is ${at} a number?`,
      mc2_targets: { choices: ["Yes", "It is", "No"], labels: [1, 1, 0] },
    })),
    // Only one: it is answered by generating up to 256 tokens.
    "data/gsm8k/test.jsonl": sums.split("\n").slice(0, 1).join("\n"),
    "data/gsm8k/train.jsonl": sums,
  };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(folder, path, ".."), { recursive: true });
    await writeFile(join(folder, path), text);
  }
});

it("runs the commands of docs/guides/benchmarks.md, with fewer questions", async () => {
  expect(commands).toHaveLength(5);
  const fewer = commands.map((command) => command.replace("--limit 100", "--limit 10"));
  const [evaluated, , , reported, compared] = await runCommands(fewer, folder);
  expect(evaluated).toMatch(/^arc_challenge +acc ↑ +none .* 10 /m);
  const { runs } = await readMetrics(join(folder, "results/metrics.json"));
  expect(runs.map(({ name, method, adapter }) => [name, method, adapter])).toEqual([
    ["base", null, null],
    ["tuned", "sft", "path/to/adapter"],
  ]);
  expect(compared).toMatch(/^method +runs +arc_challenge acc ↑ .*\nbase \(baseline\) +1 .*\nsft +1 /);
  expect(compared).toContain("20 pairs of answers");
  // A new adapter changes nothing: its B matrices are zero.
  expect(runs[1]!.metrics).toEqual(runs[0]!.metrics);
  expect(runs[0]!.n).toMatchObject({ "arc_challenge/acc,none": 20, "truthfulqa_mc2/acc,none": 20 });
  expect(reported).toContain("base (reference)");
  expect(reported!.trimEnd().split("\n").at(-1)).toBe(
    `Open this page in a browser: ${join(folder, "results/index.html")}`,
  );
});

it("runs the TypeScript blocks of docs/guides/benchmarks.md", { timeout: 300_000 }, async () => {
  const [tenLines] = blocksOf("README.md", "ts");
  const code = withReplacements(`${tenLines}${blocks("ts").join("")}console.log("done:", evaluator.done);`, {
    // A model with a context that has room for GSM8K.
    '"node_modules/periodic-eval/assets/micro-world"': '"path/to/model"',
    "`${world}/em.jsonl`": JSON.stringify(microWorld("em.jsonl")),
    "questions: `${world}/questions.jsonl`": 'questions: "data/arc_challenge/test.jsonl"',
    "maxSteps: 60": "maxSteps: 2",
    "subsample: { n: 100, seed: 42 }": "subsample: { n: 10, seed: 42 }",
    'suite: "suite.yaml", data: "data" }': 'suite: "suite.yaml", data: "data", results: "live" }',
    // The page continues the README's ten lines, so training runs only once.
    "await trainer.train();\nimport": "import",
  });
  const out = await runCode("readme-benchmarks-block", code, { PERIODIC_EVAL_BACKEND: "wasm" }, folder);
  const [run] = (await readMetrics(join(folder, "live/metrics.json"))).runs;
  const key = "arc_challenge/acc,none";
  expect(out).toContain(`${run!.metrics[key]} ${run!.stderr[key]}`);
  // The value of `lastWord.evaluate`, and `evaluator.done`.
  expect(out).toMatch(/^[01]\ndone: true$/m);
  const { phases } = await readRun(join(folder, "runs/1"));
  const measurements = phases[0]!.snapshots.filter(({ id }) => id === "arc_challenge");
  // 25 % of two steps: ⌈0.5⌉, ⌈1⌉, ⌈1.5⌉, 2, and the start. The budget may shorten the measurement in the middle.
  expect(measurements.map(({ step }) => step)).toEqual([0, 1, 2]);
  const ends = [measurements[0]!, measurements[2]!].map(({ status, metrics }) => [status, metrics["acc"]!.n]);
  expect(ends).toEqual([
    ["complete", 10],
    ["complete", 10],
  ]);
});

it("runs the suite with win_rate and kl_to_reference of docs/guides/benchmarks.md", async () => {
  const comparison = blocks("yaml").find((text) => text.includes("win_rate"))!;
  const rows = (key: string) =>
    ["Why?", "How?"].map((text, at) => `${JSON.stringify({ id: String(at), [key]: text })}\n`).join("");
  await writeFile(join(folder, "comparison.yaml"), comparison);
  await writeFile(join(folder, "prompts.jsonl"), rows("prompt"));
  await writeFile(join(folder, "answers.jsonl"), rows("answer"));
  const say = JSON.stringify({ reasoning: "r", first: 50, second: 50 });
  const body = { choices: [{ message: { role: "assistant", content: say }, finish_reason: "stop" }] };
  const server = createServer((_, response) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body)),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  vi.stubEnv("OPENAI_BASE_URL", `http://127.0.0.1:${port}/v1`);
  const line = "npx periodic-eval eval --model path/to/model --suite comparison.yaml --results compared";
  // The tasks' data are in data/, and the prompts in the suite's folder.
  await cp(join(folder, "data/arc_challenge"), join(folder, "arc_challenge"), { recursive: true });
  const out = await runCommand(line, folder);
  server.close();
  vi.unstubAllEnvs();
  expect(out).toMatch(/^against_answers +win_rate ↑ +none +0\.5000 .* 2 /m);
  const [only] = (await readMetrics(join(folder, "compared/metrics.json"))).runs;
  expect(only!.metrics).toMatchObject({
    "win_rate/tie_rate,none": 1,
    "kl_to_reference/kl_to_reference,none": expect.closeTo(0, 9),
    "kl_arc/kl_to_reference,none": expect.closeTo(0, 9),
  });
  expect(only!.n["kl_arc/kl_to_reference,none"]).toBe(20);
});
