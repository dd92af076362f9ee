import { withSession, type Logger } from "@periodic-eval/core";
import { fakeModel, memoryStore } from "@periodic-eval/testing";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { benchmarkFolder } from "./benchmark-folder.test-data.ts";
import {
  BenchmarkEvaluator,
  type BenchmarkEvaluatorOptions,
  type BenchmarkRollout,
} from "./benchmark-evaluator.ts";
import { httpStore } from "./stores/http-store.ts";
import { folderStore } from "./stores/store.ts";

const tasks = [1, 2].map((n) => ({
  id: `sum-${n}`,
  prompt: `${n} + ${n} =`,
  answer: 2 * n,
  split: "val",
  verifier: "numeric",
  metadata: { topic: "sums" },
}));

/** Trains two steps; `afterRows` runs when a callback reads rows. */
async function trained(options: Partial<BenchmarkEvaluatorOptions>, rowsFail = false) {
  const evaluator = new BenchmarkEvaluator({
    name: "sums",
    benchmark: await benchmarkFolder({ tasks }),
    runEvery: 1,
    numSamples: 3,
    temperature: 1,
    maxTokens: 6,
    metrics: ["pass@3", "pass^3", "avg"],
    chatTemplate: { systemPrompt: "Add." },
    runId: "run-1",
    ...options,
  });
  const kept = memoryStore();
  const run = rowsFail ? { ...kept, rows: () => Promise.reject(new Error("a torn page")) } : kept;
  const warnings: string[] = [];
  const logger: Logger = {
    name: "test",
    event: (event) => void (event.kind === "warning" && warnings.push(event.message)),
  };
  const session = { run, maxSteps: 2, model: fakeModel(), callbacks: [evaluator], loggers: [logger] };
  await withSession({ ...session, budget: { overheadPercent: null } }, async (open) => {
    for (let step = 1; step <= 2; step++) await open.stepEnd();
  });
  return { evaluator, warnings, run: kept, snapshots: await kept.list() };
}

/** Starts a server on loopback that answers each PUT with this status. */
async function serve(status: number) {
  const puts = new Map<string, unknown>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => void chunks.push(chunk));
    request.on("end", () => {
      puts.set(request.url!, JSON.parse(Buffer.concat(chunks).toString()));
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { puts, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const files = [0, 1, 2].flatMap((step) => [
  `sums/run-1/train/sums_step_${step}.rollouts.json`,
  `sums/run-1/train/sums_step_${step}.json`,
]);

it("puts a row per completion into a local and an HTTP store, at each step of the loop", async () => {
  const { puts, url } = await serve(204);
  const folder = await benchmarkFolder({});
  const { snapshots, run, evaluator } = await trained({ workspaceDir: folder, store: httpStore({ url }) });
  expect(evaluator.storeFailures).toEqual([]);
  expect([...puts.keys()]).toEqual(files.map((file) => `/${file}`));
  for (const snapshot of snapshots) {
    const name = `sums/run-1/train/sums_step_${snapshot.step}`;
    const text = await readFile(join(folder, `${name}.rollouts.json`), "utf8");
    const rollouts = JSON.parse(text) as readonly BenchmarkRollout[];
    expect(puts.get(`/${name}.rollouts.json`)).toEqual(rollouts);
    expect(
      rollouts
        .map(({ task_id, sample_index }) => `${task_id}#${sample_index}`)
        .sort()
        .join(" "),
    ).toBe("sum-1#0 sum-1#1 sum-1#2 sum-2#0 sum-2#1 sum-2#2");
    const rows = (await run.rows(snapshot)) as never as readonly {
      readonly id: string;
      readonly completions: readonly { readonly text: string; readonly ids: readonly number[] }[];
      readonly rewards: readonly number[];
    }[];
    for (const one of rollouts) {
      const { completions, rewards } = rows.find(({ id }) => id === one.task_id)!;
      const { text: completion, ids } = completions[one.sample_index]!;
      expect(one).toMatchObject({
        step: snapshot.step,
        phase: "train",
        split: "val",
        model_name: "fake",
        prompt: [
          { role: "system", content: "Add." },
          { role: "user", content: `${one.task_id.at(-1)} + ${one.task_id.at(-1)} =` },
        ],
        completion,
        completion_token_ids: ids,
        completion_tokens: ids.length,
        reward: rewards[one.sample_index],
        metadata: { topic: "sums" },
      });
    }
    // avg is the mean over tasks of the mean reward of the rollouts.
    const mean = rollouts.reduce((sum, { reward }) => sum + reward!, 0) / rollouts.length;
    expect(snapshot.metrics["avg"]!.value).toBeCloseTo(mean, 12);
  }
});

it("continues training if a store refuses rollouts, or rows cannot be read, and records it", async () => {
  const { url } = await serve(403);
  const refused = await trained({ store: httpStore({ url, maxRetries: 0 }) });
  expect(refused.snapshots.map(({ step, status }) => [step, status])).toEqual([
    [0, "complete"],
    [1, "complete"],
    [2, "complete"],
  ]);
  expect(refused.evaluator.storeFailures.map(({ name }) => name)).toEqual(files);
  expect(
    refused.warnings.filter((text) => text.includes(".rollouts.json: the server answered 403")),
  ).toHaveLength(3);

  const folder = await benchmarkFolder({});
  const torn = await trained({ store: folderStore(folder) }, true);
  expect(torn.evaluator.storeFailures).toEqual(
    [0, 1, 2].map((step) => ({
      store: folder,
      name: `sums/run-1/train/sums_step_${step}.rollouts.json`,
      reason: "a torn page",
    })),
  );
});
