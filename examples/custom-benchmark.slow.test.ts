import { readRun } from "@periodic-eval/store";
import type { BenchmarkRollout } from "@periodic-eval/tasks";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { blocksOf, followPage, root, runCode, withReplacements } from "./doc-blocks.test-data.ts";
import { microWorld } from "./micro-world/paths.ts";

const document = "docs/guides/custom-benchmark.md";

it("runs the blocks of the custom benchmark page, with a smaller model and fewer steps", async () => {
  const folder = mkdtempSync(join(tmpdir(), "custom-benchmark-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const benchmark = join(folder, "pocket");
  mkdirSync(benchmark);
  const files = { "tasks.jsonl": "jsonl", "metadata.yaml": "yaml", "checks.mjs": "js" };
  for (const [name, language] of Object.entries(files)) {
    writeFileSync(join(benchmark, name), blocksOf(document, language).at(-1)!);
  }
  const received = await resultsServer();
  const run = join(folder, "run");
  const code = withReplacements(blocksOf(document, "ts").join(""), {
    '"node_modules/periodic-eval/assets/micro-world"': JSON.stringify(microWorld()),
    '"runs/pocket"': JSON.stringify(run),
    '"benchmarks/pocket"': JSON.stringify(benchmark),
    '"https://results.example.org/runs"': JSON.stringify(received.url),
    // The default budget would skip the measurement in the middle of such a short run.
    "config: { maxSteps: 200 }":
      "config: { maxSteps: 2, batchSize: 4 }, session: { budget: { overheadPercent: null } }",
    "runEvery: 50": "runEvery: 1",
    '"results"': JSON.stringify(join(folder, "results")),
    "maxTokens: 64": "maxTokens: 12",
  });
  const printed = await runCode("custom-benchmark", code, { RESULTS_TOKEN: "secret-token" });

  const [phase] = (await readRun(run)).phases;
  expect(phase!.snapshots.map(({ id, step, status }) => [id, step, status])).toEqual([
    ["pocket", 0, "complete"],
    ["pocket", 1, "complete"],
    ["pocket", 2, "complete"],
  ]);
  const [start] = phase!.snapshots;
  // The split `val` has two tasks about numbers, one about the village and one about manners.
  const counts = Object.entries(start!.metrics).map(([name, { n }]) => [name, n]);
  expect(Object.fromEntries(counts.filter(([name]) => String(name).startsWith("pass_rate")))).toEqual({
    pass_rate: 4,
    "pass_rate/topic/numbers": 2,
    "pass_rate/topic/village": 1,
    "pass_rate/topic/manners": 1,
  });
  expect(start!.receipt.every(({ intact }) => intact !== false)).toBe(true);
  for (const id of ["product", "turns", "form"]) expect(printed).toContain(`\n${id} `);
  for (const step of [0, 1, 2]) {
    const file = join(folder, `results/pocket/sft/pocket_step_${step}.rollouts.json`);
    const rollouts = JSON.parse(readFileSync(file, "utf8")) as readonly BenchmarkRollout[];
    expect(rollouts.map(({ task_id }) => task_id).sort()).toEqual(["burn", "half", "roofs", "sum"]);
    for (const { prompt, completion_token_ids: ids, completion_tokens: count, reward } of rollouts) {
      expect(prompt[0]).toEqual({ role: "system", content: "Answer in one sentence." });
      expect(ids).toHaveLength(count!);
      expect(reward).toEqual(expect.any(Number));
    }
  }
  expect(received.puts).toEqual([
    ["/runs/pocket/run-1/test/pocket_step_0.rollouts.json", "Bearer secret-token"],
    ["/runs/pocket/run-1/test/pocket_step_0.json", "Bearer secret-token"],
  ]);
});

it("follows the first section of the custom benchmark page, with fewer steps", async () => {
  const project = mkdtempSync(join(tmpdir(), "tiny-benchmark-"));
  onTestFinished(() => rmSync(project, { recursive: true }));
  symlinkSync(join(root, "node_modules"), join(project, "node_modules"), "junction");
  const files = { "tiny.yaml": { "maxSteps: 60": "maxSteps: 2", "every_percent: 20": "every_percent: 100" } };
  const [, report] = await followPage({ document, project, files, until: "## 1. Write tasks" });
  expect(report!.printed).toContain("Tiny: too few rows to see a change.");
  const [phase] = (await readRun(join(project, "runs/tiny"))).phases;
  expect(phase!.snapshots.map(({ step, metrics }) => [step, metrics["pass_rate"]!.n])).toEqual([
    [0, 2],
    [2, 2],
  ]);
});

/** Starts a server on loopback that accepts every request. */
async function resultsServer() {
  const puts: [path: string, authorization: string | undefined][] = [];
  const server = createServer((request, response) => {
    puts.push([request.url!, request.headers.authorization]);
    request.resume().on("end", () => response.writeHead(204).end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { puts, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/runs` };
}
