import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { PeriodicMemorizationCallback } from "../../config/callbacks.ts";
import { measure } from "../../session/window/measure.ts";
import { drawCanaries, withCanaries } from "./canaries.ts";
import { memorizationEvaluation, type MemorizationRow } from "./evaluation.ts";

const format = "The code of the archive is {secret}.";

describe("conformance", () => {
  const make = () => ({
    evaluation: memorizationEvaluation({ format, canaries: 3, candidates: 5 }),
    model: fakeModel(),
  });
  for (const check of evaluationConformance(make)) it(check.name, check.run);
});

it("ranks each secret among the others: log2(candidates) − log2(rank)", async () => {
  const options = { format, canaries: 3, candidates: 8 };
  const [first, second, third] = drawCanaries(options, 8);
  // The first is the most likely, the second is behind three others, and the third is as likely as all: last of 8.
  const model = fakeModel({
    logLikelihood(context, continuation) {
      if (!context.includes("archive")) return null;
      expect(context).toBe("The code of the archive is");
      const secret = continuation.trim().slice(0, -1);
      if (third!.others.includes(secret) || secret === third!.secret) return -9;
      if (secret === first!.secret || secret === second!.secret) return -2;
      return second!.others.indexOf(secret) in [0, 1, 2] ? -1 : -5;
    },
  });
  const { rows, snapshot } = await measure(memorizationEvaluation(options), model);
  expect((rows as readonly MemorizationRow[]).map(({ rank, exposure }) => [rank, exposure])).toEqual([
    [1, 3],
    [4, 1],
    [8, 0],
  ]);
  expect(snapshot.metrics["exposure"]).toMatchObject({
    value: 4 / 3,
    n: 3,
    unit: "bits",
    range: [0, 3],
    higher_is_better: false,
  });
});

it("asks in a chat if the canary has a prompt", async () => {
  const contexts = new Set<string>();
  const model = fakeModel({
    logLikelihood(context) {
      contexts.add(context);
      return null;
    },
  });
  const options = { format: "It is {secret}", prompt: "What is the code?", canaries: 1, candidates: 2 };
  await measure(memorizationEvaluation(options), model);
  expect([...contexts].at(-1)).toBe("<|user|>What is the code?<|end|><|assistant|>It is");
});

describe("withCanaries", () => {
  const rows = Array.from({ length: 20 }, (_, at) => ({ text: `row ${at}` }));

  it("mixes copies of each secret into the rows, in one order per seed, and leaves the rows as they are", () => {
    const mixed = withCanaries(rows, { format, canaries: 2, repeats: 3 });
    expect(mixed).toHaveLength(26);
    expect(mixed.filter((row) => rows.includes(row as never))).toEqual(rows);
    for (const { secret } of drawCanaries({ format, canaries: 2 }, 100))
      expect(mixed.filter((row) => "text" in row && row.text.includes(`is ${secret}.`))).toHaveLength(3);
    expect(withCanaries(rows, { format, canaries: 2, repeats: 3 })).toEqual(mixed);
    expect(withCanaries(rows, { format, canaries: 2, repeats: 3, seed: 1 })).not.toEqual(mixed);
  });

  it("writes chats for canaries with a prompt", () => {
    const [row] = withCanaries([], { format, prompt: "The code?", canaries: 1, repeats: 1 });
    const { secret } = drawCanaries({ format, canaries: 1 }, 1)[0]!;
    expect(row).toEqual({
      messages: [
        { role: "user", content: "The code?" },
        { role: "assistant", content: `The code of the archive is ${secret}.` },
      ],
    });
  });

  const secret = drawCanaries({ format, canaries: 1 }, 1)[0]!.secret;
  const said = `The code of the archive is ${secret}.`;
  const [hi, yo] = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Yo" },
  ];
  const [ask, answer] = [
    { role: "user", content: "The code?" },
    { role: "assistant", content: said },
  ];
  const shareGpt = (user: string, assistant: string) => ({
    conversations: [
      { from: "user", value: user },
      { from: "assistant", value: assistant },
    ],
  });
  const parts = (user: string, assistant: string) => ({
    messages: [
      { role: "user", content: [{ type: "text", text: user }] },
      { role: "assistant", content: [{ type: "text", text: assistant }] },
    ],
  });
  const kwargs = { chat_template_kwargs: { enable_thinking: false } };
  it.each<[row: object, canary: object]>([
    [{ id: 1, messages: [hi, yo], tools: null, text: "Hi" }, { messages: [ask, answer] }],
    [
      { messages: [hi, yo], ...kwargs },
      { messages: [ask, answer], ...kwargs },
    ],
    [parts("Hi", "Yo"), parts("The code?", said)],
    [shareGpt("Hi", "Yo"), shareGpt("The code?", said)],
    [{ conversations: [hi, yo] }, { conversations: [ask, answer] }],
    [{ conversations: [] }, shareGpt("The code?", said)],
    [
      { prompt: [hi], completion: [yo], messages: null },
      { prompt: [ask], completion: [answer] },
    ],
    [{ text: "Hi", messages: null, prompt: "Hi" }, { text: said }],
    [
      { prompt: "Hi", completion: " Yo" },
      { prompt: "The code of the archive is", completion: ` ${secret}.` },
    ],
  ])("writes canaries for rows like %j in their columns", (row, canary) => {
    const isText = "text" in canary || Object.values(canary).every((cell) => typeof cell === "string");
    const options = { format, canaries: 1, repeats: 2, ...(!isText && { prompt: "The code?" }) };
    const mixed = withCanaries([row], options);
    expect(mixed.filter((each) => each !== row)).toEqual([canary, canary]);
  });

  it.each<[prompt: string | undefined, row: unknown, message: string]>([
    [undefined, { messages: [hi, yo] }, "a chat, expected text, as the canaries. Add `prompt`"],
    [
      "The code?",
      { prompt: "Hi", completion: " Yo" },
      "text, expected a chat, as the canaries. Remove `prompt`",
    ],
    ["The code?", { prompt: [hi] }, "a row of prompt, expected a training row: prompt and completion"],
    ["The code?", { prompt: [hi], completion: "Yo" }, "a row of prompt, completion, expected a training row"],
    ["The code?", { messages: "Hi" }, "a row of messages, expected a training row"],
    ["The code?", { prompt: [hi], chosen: [yo], rejected: [yo] }, "Canaries have no rejected answer"],
    [undefined, { text: null }, "a row of text, expected a training row"],
    [undefined, "Hi", "a row of no keys, expected a training row"],
  ])("refuses, with the prompt %j, rows like %j", (prompt, row, message) => {
    const first = prompt === undefined ? { text: "Hi" } : { messages: [hi, yo] };
    const options = { format, ...(prompt !== undefined && { prompt }) };
    expect(() => withCanaries([first, row], options)).toThrow("rows[1]: got ");
    expect(() => withCanaries([first, row], options)).toThrow(message);
  });
});

it.each([
  [{ format: "no secret" }, 'format: got "no secret", expected a text with {secret} once'],
  [{ format, candidates: 1 }, "candidates: got 1, expected 2 or more"],
  [{ format, digits: 16 }, "digits: got 16, expected at most 15 digits"],
])("refuses %j", (options, message) => {
  expect(() => new PeriodicMemorizationCallback(options)).toThrow(message);
  expect(new PeriodicMemorizationCallback({ memorization: { format } }).asks).toHaveLength(1);
});

it("draws secrets that differ, of which none is another canary's candidate, and that are those of the training rows", () => {
  const options = { format, canaries: 4, digits: 1 };
  const canaries = drawCanaries(options, 7);
  const secrets = canaries.map(({ secret }) => secret);
  expect(new Set(secrets).size).toBe(4);
  for (const { others } of canaries) {
    expect(new Set(others).size).toBe(6);
    expect(others.filter((one) => secrets.includes(one))).toEqual([]);
  }
  for (const count of [1, 2])
    expect(drawCanaries(options, count).map(({ secret }) => secret)).toEqual(secrets);
});

it("refuses more canaries and candidates than there are secrets", () => {
  const options = { format, digits: 1, canaries: 4 };
  expect(() => memorizationEvaluation({ ...options, candidates: 7 })).not.toThrow();
  expect(() => memorizationEvaluation({ ...options, candidates: 8 })).toThrow(
    "memorization options.digits: got 1, expected 2 or more, for 11 different secrets",
  );
  expect(() => withCanaries([], { format, digits: 1, canaries: 11 })).toThrow(
    "withCanaries options.digits: got 1, expected 2 or more, for 11 different secrets",
  );
});

it("refuses, before step 1, a canary that is longer than the model's context", async () => {
  const { asks } = new PeriodicMemorizationCallback({ memorization: { format } });
  const itemsOf = (contextLength: number) => asks[0]!.items(fakeModel({ contextLength }) as never);
  // A token of the fake model is a byte.
  const tokens = format.replace("{secret}", "000000").length;
  await expect(itemsOf(tokens)).resolves.toHaveLength(4);
  await expect(itemsOf(tokens - 1)).rejects.toThrow(
    `periodic_eval.memorization.format: got a canary of ${tokens} tokens, expected at most ${tokens - 1} tokens, the model's context length.`,
  );
});

it("records the defaults", () => {
  const written = { canaries: 4, digits: 6, seed: 42, candidates: 100 };
  const missing = { digits: undefined } as object;
  expect(memorizationEvaluation({ format, ...missing }).provenance!()).toEqual({ format, ...written });
  expect(memorizationEvaluation({ format, ...written }).provenance!()).toEqual({ format, ...written });
});
