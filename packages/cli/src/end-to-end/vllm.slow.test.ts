// Compares a real vLLM with the models of this process, on SmolLM2-135M-Instruct: scores, texts, adapters and replicas.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { capabilityEvaluation, type EvaluableModel, type LogLikelihoodRequest } from "@periodic-eval/core";
import { modelConformance } from "@periodic-eval/testing";
import { openCheckpoint, loadCausalLM, useBackend, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { vllm, type ServedModel } from "@periodic-eval/remote";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { data } from "../../../testing/src/fixtures.test-data.ts";
import { smollm2 } from "../../../models/src/testing/fixtures.test-data.ts";
import {
  hasVllm,
  layerModules,
  needsVllm,
  startVllm,
  type VllmServer,
} from "../../../remote/src/engine/vllm-server.test-data.ts";

const questions = join(data, "arc_challenge", "test.jsonl");
const canRun = hasVllm && existsSync(smollm2) && existsSync(questions);
const title = `vLLM with SmolLM2-135M-Instruct (${needsVllm}, ${smollm2} and ${questions})`;
const timeout = { timeout: 1_800_000 };
const call = () => ({ signal: new AbortController().signal });

describe.skipIf(!canRun)(title, () => {
  const folder = canRun ? mkdtempSync(join(tmpdir(), "snapshots-")) : "";
  const snapshots = [1, 2, 3].map((step) => join(folder, `checkpoint-${step}`));
  const servers: VllmServer[] = [];
  let served: ServedModel;
  let inProcess: EvaluableModel;
  const closing: (() => unknown)[] = [];

  beforeAll(async () => {
    await useBackend();
    const tokenizer = await loadTokenizer(smollm2);
    await saveSnapshots(snapshots);
    const opened = await openCheckpoint(smollm2);
    closing.push(() => opened.dispose());
    inProcess = opened.model;
    servers.push(await startVllm(smollm2));
    served = await vllm({ urls: servers[0]!.url, model: "base", tokenizer });
  }, timeout.timeout);

  afterAll(async () => {
    for (const { kill } of servers) kill();
    for (const close of closing) await close();
    rmSync(folder, { recursive: true, force: true });
  });

  describe("passes the conformance suite", () => {
    for (const check of modelConformance(() => served)) it(check.name, timeout, check.run);
  });

  it("scores 200 ARC questions by cloze as the model in this process does", timeout, async () => {
    const [asked, expected] = [await clozeRows(served, 200), await clozeRows(inProcess, 200)];
    const differences = asked.flatMap(({ nats }, index) =>
      nats.map((value, at) => Math.abs(value - expected[index]!.nats[at]!)),
    );
    report("cloze, 200 questions", differences);
    expect(differences.length).toBeGreaterThan(700);
    expect(Math.max(...differences)).toBeLessThan(1e-3);
    expect(asked.filter(({ predicted }, index) => predicted !== expected[index]!.predicted)).toEqual([]);
  });

  it("generates the same greedy texts, and log-probabilities within 1e-3", timeout, async () => {
    const subjects = [
      "rivers",
      "the moon",
      "bread",
      "prime numbers",
      "winter",
      "trains",
      "honesty",
      "the sea",
    ];
    const asked = subjects.map((subject) => ({
      prompt: { messages: [{ role: "user", content: `Write two sentences about ${subject}.` }] },
      sampling: { maxNewTokens: 40, temperature: 0, seed: "greedy" },
    }));
    const [texts, expected] = [
      await served.generate!(asked, call()),
      await inProcess.generate!(asked, call()),
    ];
    const facts = (all: typeof texts) => all.map(({ text, ids, finish }) => ({ text, ids, finish }));
    expect(facts(texts)).toEqual(facts(expected));
    const differences = texts.flatMap(({ tokenNats }, index) =>
      tokenNats!.map((value, at) => Math.abs(value - expected[index]!.tokenNats![at]!)),
    );
    report(`greedy texts, ${asked.length} of 40 tokens`, differences);
    expect(Math.max(...differences)).toBeLessThan(1e-3);
  });

  it(
    "equals adapters of this process with three hot-loaded ones, and never mixes them with the base",
    timeout,
    async () => {
      const requests = someRequests(12);
      const ofBase = await sumsOf(inProcess, requests);
      for (const path of snapshots) {
        const [hot, cold] = [await served.openCheckpoint(smollm2, path), await openCheckpoint(smollm2, path)];
        const expected = await sumsOf(cold.model, requests);
        // Both at a time, many times: the server would answer with the adapter for both if they were in flight together.
        const asked = Array.from({ length: 8 }, async (_, index) => {
          const [model, right] = index % 2 === 0 ? [hot.model, expected] : [hot.model.base!, ofBase];
          return largest(await sumsOf(model, requests), right);
        });
        const differences = await Promise.all(asked);
        report(
          `${path.split("/").at(-1)}, ${requests.length} pairs, four times each beside the base`,
          differences,
        );
        expect(Math.max(...differences)).toBeLessThan(1e-3);
        // The adapters change the numbers by far more.
        expect(largest(expected, ofBase)).toBeGreaterThan(0.1);
        await hot.dispose!();
        await cold.dispose();
      }
      const listed = (await (await fetch(`${servers[0]!.url}/v1/models`)).json()) as {
        data: { id: string }[];
      };
      expect(listed.data.map(({ id }) => id)).toEqual(["base"]);
    },
  );

  it("refuses an adapter on the head, which the server ignores", timeout, async () => {
    const path = join(folder, "with-head");
    const lm = await loadCausalLM(smollm2);
    const lora = withLora(lm, { rank: 4, targetModules: ["q_proj", "lm_head"] });
    await lora.save(path);
    lora.dispose();
    lm.dispose();
    await expect(served.openCheckpoint(smollm2, path)).rejects.toMatchObject({
      code: "model",
      got: `a server, ${servers[0]!.url}, that ignores adapters on lm_head`,
    });
  });

  it("scores every question once on two replicas of which one is killed", timeout, async () => {
    servers.push(await startVllm(smollm2));
    const urls = servers.map(({ url }) => url);
    const tokenizer = await loadTokenizer(smollm2);
    const pair = await vllm({ urls, model: "base", tokenizer, concurrency: 2 });
    const second = await vllm({ urls: urls[1]!, model: "base", tokenizer });
    const requests = someRequests(150);
    const expected = await served.logLikelihoods!(requests, call());
    expect(largest(sums(await second.logLikelihoods!(requests, call())), sums(expected))).toBeLessThan(1e-5);
    const adapted = await pair.openCheckpoint("base", snapshots[0]);
    const ofAdapter = await sumsOf(adapted.model, someRequests(12));
    let [tokens, inFlight, ended] = [0, 0, 0];
    const asked = pair.logLikelihoods!(requests, {
      ...call(),
      countTokens: (more) => (tokens += more),
      beforeRequest: () => {
        inFlight++;
        return () => {
          inFlight--;
          if (++ended === 4) servers[1]!.kill();
        };
      },
    });
    const answers = await asked;
    report(`two replicas, one killed, ${requests.length} pairs`, [largest(sums(answers), sums(expected))]);
    expect(largest(sums(answers), sums(expected))).toBeLessThan(1e-5);
    const ids = requests.map(({ context, continuation }) =>
      tokenizer.encode((context as { text: string }).text + (continuation as string)),
    );
    expect([tokens, inFlight]).toEqual([ids.reduce((sum, { length }) => sum + length + 1, 0), 0]);
    // The adapter is on the replica that is left.
    expect(largest(await sumsOf(adapted.model, someRequests(12)), ofAdapter)).toBeLessThan(1e-5);
    await pair.dispose();
  });
});

/** Saves three adapters with weights of a small run: A as initialized, B small and different in each. The last has patterns. */
async function saveSnapshots(paths: readonly string[]): Promise<void> {
  const lm = await loadCausalLM(smollm2);
  for (const [index, path] of paths.entries()) {
    const patterns = { rankPattern: { q_proj: 2, down_proj: 6 }, alphaPattern: { v_proj: 3, down_proj: 9 } };
    const lora = withLora(lm, {
      rank: 4,
      alpha: 8,
      targetModules: layerModules,
      seed: String(index),
      ...(index === 2 && patterns),
    });
    for (const [at, { name, variable }] of lora.weights().entries())
      if (name.includes("lora_B"))
        tf.tidy(() =>
          variable.assign(tf.randomNormal(variable.shape, 0, 0.01 * (index + 1), "float32", at + 1)),
        );
    await lora.save(path);
    lora.dispose();
  }
  lm.dispose();
}

interface ScoredRow {
  readonly nats: readonly number[];
  readonly predicted: string | null;
}

async function clozeRows(model: EvaluableModel, count: number): Promise<readonly ScoredRow[]> {
  const evaluation = capabilityEvaluation({ questions, method: "cloze", subsample: { n: count, seed: 42 } });
  const items = await evaluation.items(model as never);
  const context = { ...call(), seed: "0", progress: () => {} };
  return (await evaluation.measure(model as never, items as never, context)) as never;
}

/** Contexts of different lengths with short continuations. */
const someRequests = (count: number): readonly LogLikelihoodRequest[] =>
  Array.from({ length: count }, (_, index) => ({
    context: {
      text: `${"The lake is deep and cold. ".repeat(index % 7)}Question ${index}: how deep is it? Answer:`,
    },
    continuation: [" It is", " Nobody knows", " 40 metres"][index % 3]!,
  }));

const sums = (answers: readonly { readonly sumNats: number }[]) => answers.map(({ sumNats }) => sumNats);

const sumsOf = async (model: EvaluableModel, requests: readonly LogLikelihoodRequest[]) =>
  sums(await model.logLikelihoods!(requests, call()));

const largest = (some: readonly number[], expected: readonly number[]): number =>
  Math.max(...some.map((value, index) => Math.abs(value - expected[index]!)));

/** docs/guides/servers.md has these numbers. */
const report = (what: string, differences: readonly number[]): void =>
  console.log(`${what}: largest difference ${Math.max(...differences).toExponential(1)} nats`);
