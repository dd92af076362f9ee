import { describe, expect, it } from "vitest";
import {
  fakeGuard,
  fakeJudge,
  fakeModel,
  fakeTokenizer,
  guardConformance,
  manualClock,
  memoryStore,
  modelConformance,
  storeConformance,
} from "./index.ts";

const live = { signal: new AbortController().signal };

describe("memoryStore", () => {
  for (const check of storeConformance(memoryStore)) it(check.name, check.run);
});

describe("fakeModel", () => {
  for (const check of modelConformance(() => fakeModel())) it(check.name, check.run);
});

describe("fakeModel with a short context and another template", () => {
  const tokenizer = fakeTokenizer({ defaultSystem: "You are kind.", beginOfText: true });
  for (const check of modelConformance(() => fakeModel({ tokenizer, contextLength: 128 })))
    it(check.name, check.run);
});

describe("fakeGuard", () => {
  for (const check of guardConformance(() => fakeGuard())) it(check.name, check.run);
  let state = 0;
  const watching = guardConformance(() => fakeGuard({ name: "weights", observe: () => `${state}` }), {
    disturb: () => void state++,
  });
  for (const check of watching) it(`watching: ${check.name}`, check.run);
  for (const check of guardConformance(() => fakeGuard({ observe: () => null })))
    it(`blind: ${check.name}`, check.run);
});

describe("scripts", () => {
  it("fakeModel answers as scripted, and by its hash where the script returns null", async () => {
    const model = fakeModel({
      nextToken: (prompt, candidate) => (prompt.endsWith("(") ? (candidate === "B" ? -0.1 : -3) : null),
      logLikelihood: (_, continuation) => -continuation.length,
      reply: (prompt) => (prompt.includes("Hello") ? "Hello to you." : null),
    });
    const ask = { prompt: { text: "(" }, candidates: [65, 66] }; // A, B
    expect((await model.nextToken([ask], live))[0]!.nats).toEqual([-3, -0.1]);
    expect(
      (await model.logLikelihoods([{ context: { text: "a" }, continuation: " four" }], live))[0]!.sumNats,
    ).toBe(-5);
    const sampling = { maxNewTokens: 4, temperature: 0, seed: "s" };
    const replies = await model.generate(
      [
        { prompt: { text: "Hello" }, sampling },
        { prompt: { text: "Bye" }, sampling },
      ],
      live,
    );
    expect(replies[0]!.text).toBe("Hello to you.");
    expect(replies[1]!.text).toMatch(/^[a-z]{0,4}$/);
    expect(model.calls).toEqual({ logLikelihoods: 1, nextToken: 1, generate: 1 });
  });

  it("fakeModel changes its numbers only with its weights", async () => {
    let step = 0;
    const model = fakeModel({ weights: () => `${step}` });
    const ask = () => model.nextToken([{ prompt: { text: "x" }, candidates: [1] }], live);
    const before = await ask();
    expect(await ask()).toEqual(before);
    step = 1;
    expect(await ask()).not.toEqual(before);
  });

  it("fakeTokenizer renders the three endings and marks the assistant's turns", () => {
    const tokenizer = fakeTokenizer();
    const messages = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Yo" },
    ];
    const text = (ending: "generation" | "continue" | "complete") =>
      tokenizer.render({ messages }, { ending }).text;
    expect(text("complete")).toBe("<|user|>Hi<|end|><|assistant|>Yo<|end|>");
    expect(text("generation")).toBe("<|user|>Hi<|end|><|assistant|>Yo<|end|><|assistant|>");
    expect(text("continue")).toBe("<|user|>Hi<|end|><|assistant|>Yo");
    // user, H, i, end, assistant | Y, o, end
    expect(tokenizer.render({ messages }, { ending: "complete" }).assistantMask).toEqual([
      false,
      false,
      false,
      false,
      false,
      true,
      true,
      true,
    ]);
    expect(() => tokenizer.render({ messages: [{ role: "tool", content: "" }] })).toThrow('no role "tool"');
  });

  it("fakeTokenizer inserts its default system prompt for omit only, and throws for no_system_block", () => {
    const tokenizer = fakeTokenizer({ defaultSystem: "Be kind." });
    const messages = [{ role: "user", content: "Hi" }];
    expect(tokenizer.render({ messages }).text).toContain("<|system|>Be kind.<|end|>");
    expect(tokenizer.render({ messages, system: { text: "" } }).text).toContain("<|system|><|end|>");
    expect(() => tokenizer.render({ messages, system: "no_system_block" })).toThrow(
      "always writes a system block",
    );
    expect(fakeTokenizer().render({ messages, system: "no_system_block" }).text).not.toContain("system");
  });

  it("manualClock changes only by advance", () => {
    const clock = manualClock();
    expect([clock.seconds(), clock.iso()]).toEqual([0, "2026-01-01T00:00:00.000Z"]);
    clock.advance(90.5);
    expect([clock.seconds(), clock.iso()]).toEqual([90.5, "2026-01-01T00:01:30.500Z"]);
    expect(() => clock.advance(-1)).toThrow(RangeError);
  });
});

describe("fakeJudge", () => {
  it("returns the scripted scores or status, and records its requests", async () => {
    const judge = fakeJudge(
      (question, answer) => (answer === "" ? "refusal" : { aligned: question.length }),
      {
        model: "judge-1",
      },
    );
    const requests = [
      { question: "Why?", answer: "Because." },
      { question: "Why?", answer: "", fresh: true },
    ];
    expect(await judge.grade(requests, live)).toEqual([
      { status: "graded", scores: { aligned: 4 }, raw: '{"aligned":4}', model: "judge-1" },
      { status: "refusal", raw: '"refusal"', model: "judge-1" },
    ]);
    expect(judge.requests).toEqual(requests);
  });

  it("throws from check if it is unreachable, and rejects for an aborted signal", async () => {
    const judge = fakeJudge(() => "error", { unreachable: new Error("no route to host") });
    await expect(judge.check!(live)).rejects.toThrow("no route to host");
    await expect(judge.grade([], { signal: AbortSignal.abort() })).rejects.toThrow();
  });
});
