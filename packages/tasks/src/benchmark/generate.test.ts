import type { Completion, EvaluableModel, GenerateRequest, ModelWith } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import type { BenchmarkOptions } from "./benchmark-options.ts";
import { measured } from "./sums.test-data.ts";

describe("the chat template", () => {
  const requestOf = async (options: Partial<BenchmarkOptions>, messages?: readonly object[]) => {
    const requests: GenerateRequest[] = [];
    const inner = fakeModel({ reply: () => "4" });
    const model: EvaluableModel = {
      ...inner,
      generate: (some, call) => {
        requests.push(...some);
        return inner.generate(some, call);
      },
    };
    const task = {
      id: "a",
      ...(messages ? { messages } : { prompt: "2 + 2" }),
      answer: 4,
      split: "val",
      verifier: "numeric",
    };
    await measured(options, model, { tasks: [task] });
    return requests[0]!;
  };

  it("puts the prompt into the user message, after the system prompt", async () => {
    const chatTemplate = {
      systemPrompt: "Add.",
      userTemplate: "{prompt} = ?\n$& {prompt}",
      enableThinking: false,
    };
    expect((await requestOf({ chatTemplate, maxTokens: 5 })).prompt).toEqual({
      messages: [{ role: "user", content: "2 + 2 = ?\n$& 2 + 2" }],
      system: { text: "Add." },
      templateKwargs: { enable_thinking: false },
    });
    expect(await requestOf({ maxTokens: 5 })).toMatchObject({
      prompt: { messages: [{ role: "user", content: "2 + 2" }] },
      sampling: { maxNewTokens: 5, temperature: 0 },
    });
  });

  it("keeps a task's system message, and applies the user template to its last message", async () => {
    const own = [
      { role: "system", content: "Own." },
      { role: "user", content: "1 + 1" },
      { role: "assistant", content: "2" },
      { role: "user", content: "2 + 2" },
    ];
    const chatTemplate = { systemPrompt: "Add.", userTemplate: "{prompt} =" };
    expect((await requestOf({ chatTemplate }, own)).prompt).toEqual({
      messages: [...own.slice(0, 3), { role: "user", content: "2 + 2 =" }],
    });
  });
});

/** A model that records the number of requests in each call. */
function counting(model: ModelWith<"generate"> = fakeModel()) {
  const calls: number[] = [];
  const { identity, contextLength } = model;
  const counted: EvaluableModel = {
    identity,
    contextLength,
    generate(requests, options) {
      calls.push(requests.length);
      return model.generate(requests, options);
    },
  };
  return { model: counted, calls };
}

describe("nConcurrent", () => {
  it.each([
    [{ nConcurrent: 4 }, [4, 2]],
    [{ nConcurrent: 1 }, [1, 1, 1, 1, 1, 1]],
    // Each call holds two tasks with four completions each.
    [{ nConcurrent: 8, numSamples: 4, temperature: 1 }, [8, 8, 8]],
    // The eight completions of a task are split over three calls.
    [{ nConcurrent: 3, numSamples: 8, temperature: 1, limit: 2 }, [3, 3, 2, 3, 3, 2]],
  ])("turns %j into engine calls with %j requests", async (options, expected) => {
    const { model, calls } = counting();
    await measured(options, model);
    expect(calls).toEqual(expected);
  });

  it("does not change the completions", async () => {
    const sampled = { numSamples: 3, temperature: 1, maxTokens: 6 };
    const [a, b] = [
      await measured({ ...sampled, nConcurrent: 2 }, fakeModel()),
      await measured(sampled, fakeModel()),
    ];
    expect(a.rows).toEqual(b.rows);
    expect(new Set(a.rows[0]!.completions.map(({ text }) => text)).size).toBe(3);
  });
});

describe("accounting", () => {
  const completion: Completion = { text: "2", ids: null, tokenNats: null, finish: "length" };
  const served = (usage?: Completion["usage"]): EvaluableModel => ({
    identity: { name: "served", engine: "test", dtype: "unknown", weights: null, adapter: null },
    contextLength: null,
    generate: async (requests) => requests.map(() => ({ ...completion, ...(usage && { usage }) })),
  });
  const price = { inputPerMillion: 2, outputPerMillion: 10 };

  it("uses the server's token counts and the given price", async () => {
    const { snapshot } = await measured({ price }, served({ inputTokens: 100, outputTokens: 7 }));
    // 6 tasks: 600 · 2 $/M + 42 · 10 $/M
    expect(snapshot["usage"]).toEqual({
      completions: 6,
      unknown: 0,
      input_tokens: 600,
      output_tokens: 42,
      cost: 0.00162,
    });
    expect(snapshot["truncated"]).toBe(6);
    expect(snapshot.timing.measure_seconds).toBeGreaterThan(0);
  });

  it("counts tokens with the tokenizer if the server reports no usage, and reports null without a tokenizer", async () => {
    const { rows, snapshot } = await measured({ price, maxTokens: 4 }, fakeModel({ contextLength: 64 }));
    for (const { prompt, completions } of rows) {
      expect(completions[0]!.inputTokens).toBe(prompt[0]!.content.length + 3);
      expect(completions[0]!.outputTokens).toBe(completions[0]!.text.length);
    }
    const { input_tokens, output_tokens, cost } = snapshot["usage"] as Record<string, number>;
    expect(cost).toBeCloseTo((2 * input_tokens! + 10 * output_tokens!) / 1e6, 15);
    expect((await measured({ price }, served())).snapshot["usage"]).toEqual({
      completions: 6,
      unknown: 6,
      input_tokens: null,
      output_tokens: null,
      cost: null,
    });
    // Only the tokens of completions are reported.
    const half = served({ inputTokens: null, outputTokens: 7 });
    expect((await measured({ price }, half)).snapshot["usage"]).toEqual({
      completions: 6,
      unknown: 6,
      input_tokens: null,
      output_tokens: 42,
      cost: null,
    });
  });
});
