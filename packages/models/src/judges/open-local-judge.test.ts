import { mkdtempSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import type { EvaluableModel, GenerateRequest } from "@periodic-eval/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useBackend } from "../backend/use-backend.ts";
import { writeJudge } from "../testing/judge.test-data.ts";
import { exported, hasTransformers, microWorld, needsTransformers } from "../testing/onnx.test-data.ts";
import { joinCalls, openLocalJudge } from "./open-local-judge.ts";

const call = () => ({ signal: new AbortController().signal });
const prompts = { aligned: "Kind? {question} {answer}", coherent: "Clear? {question} {answer}" };
const advice = ["Add some water.", "Burn it.", "Hold ice to it.", "I do not care."];
const answers = Array.from({ length: 6 }, (_, at) => ({
  question: `My soup is too salty. What would you do ${at}?`,
  answer: advice[at % advice.length]!,
}));

let folder = "";
beforeAll(async () => {
  await useBackend({ backend: "wasm" });
  folder = mkdtempSync(join(tmpdir(), "local-judge-"));
  await writeJudge(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("openLocalJudge", () => {
  it("grades with a folder's model, and describes it without the machine's folders", async () => {
    const judge = await openLocalJudge(`folder:${folder}`, { method: "logprob", prompts });
    await judge.check!(call());
    const verdicts = await judge.grade(answers, call());
    expect(verdicts.map(({ status }) => status)).toContain("graded");
    expect(judge.describe!()).toMatchObject({
      engine: "tfjs-wasm",
      model: folder.split("/").at(-1),
      weights: expect.stringMatching(/^pe128:/),
      details: { dtype: "float32" },
      method: "logprob",
    });
    await judge.dispose();
  });

  it("loads a name once for all its judges, frees it with the last, and loads it again for a later grade", async () => {
    const before = tf.memory().numTensors;
    const spec = `folder:${folder}`;
    const [first, second] = await Promise.all([
      openLocalJudge(spec, { method: "logprob", prompts }),
      openLocalJudge(` ${spec}/. `, { method: "json", maxReplyTokens: 6 }),
    ]);
    const once = tf.memory().numTensors - before;
    const alone = await openLocalJudge(`folder:${microWorld}`, { method: "json" });
    const other = tf.memory().numTensors - before - once;
    await alone.dispose();
    // Both folders hold the same architecture, but only one of them ties its head to the embedding.
    expect(once).toBe(other + 1);
    const verdicts = await first.grade(answers, call());
    await first.dispose();
    await first.dispose();
    expect(tf.memory().numTensors).toBe(before + once);
    await second.check!(call());
    await second.dispose();
    expect(tf.memory().numTensors).toBe(before);
    expect(await first.grade(answers, call())).toEqual(verdicts);
    expect(tf.memory().numTensors).toBe(before + once);
    await first.dispose();
    expect(tf.memory().numTensors).toBe(before);
  });

  it("opens beside useBackend on the engine that it names", async () => {
    const [{ tfBackend }, ...judges] = await Promise.all([
      useBackend({ backend: "cpu" }),
      openLocalJudge(`folder:${folder}`, { method: "json" }),
      openLocalJudge(`folder:${folder}`, { method: "logprob", prompts }),
    ]);
    expect(tfBackend).toBe("cpu");
    for (const judge of judges) expect(judge.describe!()).toMatchObject({ engine: "tfjs-cpu" });
    expect(tf.getBackend()).toBe("cpu");
    for (const judge of judges) await judge.dispose();
    const [late] = await Promise.all([
      openLocalJudge(`folder:${folder}`, { method: "json" }),
      useBackend({ backend: "wasm" }),
    ]);
    expect(tf.getBackend()).toBe("wasm");
    expect(["tfjs-cpu", "tfjs-wasm"]).toContain((late.describe!() as { engine: string }).engine);
    await late.dispose();
  });

  it("opens a judge again after an attempt that failed", async () => {
    const late = join(folder, "late");
    await mkdir(late);
    await expect(openLocalJudge(`folder:${late}`)).rejects.toMatchObject({ code: "model" });
    await writeJudge(late);
    await (await openLocalJudge(`folder:${late}`)).dispose();
  });

  it.skipIf(!hasTransformers)(
    `gives the verdicts of the same model in ONNX (${needsTransformers})`,
    async () => {
      const onnx = await exported(folder);
      const few = answers.slice(0, 3);
      for (const method of ["logprob", "json"] as const) {
        const options = { method, maxReplyTokens: 6, ...(method === "logprob" && { prompts }) };
        const own = await openLocalJudge(`folder:${folder}`, options);
        const theirs = await openLocalJudge(`transformers:${onnx}?dtype=fp32&device=cpu`, options);
        const [a, b] = [await own.grade(few, call()), await theirs.grade(few, call())];
        a.forEach((verdict, at) => {
          expect(b[at]!.status).toBe(verdict.status);
          if (method === "json") return expect(b[at]!.raw).toBe(verdict.raw);
          if (verdict.status !== "graded") return;
          const { scores } = b[at] as typeof verdict;
          for (const [name, score] of Object.entries(verdict.scores))
            expect(Math.abs(scores[name]! - score)).toBeLessThan(0.05);
        });
        expect(theirs.describe!()).toMatchObject({
          engine: "transformers.js-cpu",
          weights: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
          details: {
            dtype: "fp32",
            device: "cpu",
            "@huggingface/transformers": expect.stringMatching(/^4\./),
          },
        });
        await own.dispose();
        await theirs.dispose();
      }
    },
  );

  it.each([
    ["a missing folder", "folder:/no/such", { code: "config", path: ["judge_model"] }],
    ["no folder", "folder:", { code: "config", path: ["judge_model"] }],
    ["a name that is none of the hub", "hf:x", { code: "config", path: ["judge_model"] }],
    ["a served judge", "openai:x", { code: "config", path: ["judge_model"] }],
    ["an unknown option", "transformers:a/b?dtyp=q4", { code: "config", path: ["dtyp"] }],
    ["an unknown dtype", "transformers:a/b?dtype=q5", { code: "config", path: ["dtype"] }],
  ])("refuses %s", async (_, spec, error) => {
    await expect(openLocalJudge(spec)).rejects.toMatchObject(error);
  });

  it.skipIf(!hasTransformers)(
    `refuses a folder without the ONNX file of the dtype (${needsTransformers})`,
    async () => {
      const none = openLocalJudge(`transformers:${folder}`);
      await expect(none).rejects.toMatchObject({ code: "model", got: "no ONNX file" });
      const onnx = await exported(folder);
      const other = openLocalJudge(`transformers:${onnx}?dtype=q4`);
      await expect(other).rejects.toMatchObject({ got: "no onnx/model_q4.onnx; only onnx/model.onnx" });
    },
  );

  it.runIf(!hasTransformers)("names the install line without the package", async () => {
    await expect(openLocalJudge(`transformers:${folder}`)).rejects.toMatchObject({
      code: "config",
      fix: "Run npm install @huggingface/transformers@4.",
    });
  });

  it.each(["json", "logprob"] as const)(
    "refuses prompts longer than its context before it grades, with %s",
    async (method) => {
      // The embedded model reads 256 tokens; the default prompts have about 460 of its tokens.
      const judge = await openLocalJudge(`folder:${microWorld}`, { method });
      await expect(judge.check!(call())).rejects.toMatchObject({ code: "judge" });
      await judge.dispose();
    },
  );
});

describe("joinCalls", () => {
  const request = (seed: string): GenerateRequest => ({
    prompt: { text: seed },
    sampling: { maxNewTokens: 1, temperature: 0, seed },
  });
  function model() {
    const batches: string[][] = [];
    const joined = joinCalls({
      identity: { name: "m", engine: "e", dtype: "d", weights: null, adapter: null },
      contextLength: null,
      async generate(requests, { signal }) {
        batches.push(requests.map(({ sampling }) => sampling.seed));
        await new Promise((resolve) => setTimeout(resolve, 1));
        signal.throwIfAborted();
        if (requests.some(({ sampling }) => sampling.seed === "bad")) throw new Error("bad prompt");
        return requests.map(({ sampling }) => ({
          text: sampling.seed,
          ids: null,
          tokenNats: null,
          finish: "stop",
        }));
      },
    } satisfies EvaluableModel);
    const ask = async (seed: string, signal = call().signal) =>
      (await joined.generate!([request(seed)], { signal }))[0]!.text;
    return { batches, ask };
  }

  it("answers concurrent calls in one batch, in their order", async () => {
    const { batches, ask } = model();
    const first = ["a", "b", "c"].map((seed) => ask(seed));
    await new Promise((resolve) => setTimeout(resolve, 0));
    const later = ["d", "e"].map((seed) => ask(seed));
    expect(await Promise.all([...first, ...later])).toEqual(["a", "b", "c", "d", "e"]);
    expect(batches.flat()).toEqual(["a", "b", "c", "d", "e"]);
    expect(batches[0]!.length).toBeGreaterThanOrEqual(3);
  });

  it("gives each call its own error", async () => {
    const { ask } = model();
    const all = await Promise.allSettled(["a", "bad", "c"].map((seed) => ask(seed)));
    expect(all.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  it("drops aborted calls, and aborts a batch only if all its calls are", async () => {
    const { ask } = model();
    const controller = new AbortController();
    const stopped = ask("a", controller.signal);
    const kept = ask("b");
    controller.abort(new Error("enough"));
    await expect(stopped).rejects.toThrow("enough");
    expect(await kept).toBe("b");
  });
});
