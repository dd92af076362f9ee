import { judgeGrader } from "@periodic-eval/core";
import { describe, expect, it, vi } from "vitest";
import { anthropicModel, chatCompletionsModel } from "../index.ts";
import { serveInTests } from "./api-server.test-data.ts";

const callOptions = { signal: new AbortController().signal };
const serve = serveInTests("sk-0123456789");

const greedy = { maxNewTokens: 4, temperature: 0, seed: "1" };

const providers = [
  { name: "openai", open: chatCompletionsModel },
  { name: "anthropic", open: anthropicModel },
] as const;

describe("chat template variables", () => {
  const sampling = greedy;
  const messages = [{ role: "user", content: "Why?" }];
  const requestsWith = (templateKwargs: Readonly<Record<string, boolean>>) => [
    { prompt: { messages, templateKwargs }, sampling },
  ];
  const off = { enable_thinking: false };

  it("sends chat_template_kwargs to a compatible server, and omits the field if the prompt has none", async () => {
    const server = await serve(() => ({ say: "Because." }));
    const model = chatCompletionsModel({ model: "m", baseUrl: server.url });
    await model.generate(requestsWith(off), callOptions);
    await model.generate(requestsWith({}), callOptions);
    const [first, second] = server.received.map(({ body }) => body);
    expect(first).toMatchObject({ messages, chat_template_kwargs: { enable_thinking: false } });
    expect(second).not.toHaveProperty("chat_template_kwargs");
  });

  it("throws before any request if the API does not accept the variables or the option `body` also sets them", async () => {
    const server = await serve(() => ({ say: "Because." }));
    const body = { chat_template_kwargs: { enable_thinking: true } };
    const cases = [
      [anthropicModel({ model: "m", baseUrl: server.url }), "none, because Anthropic's API"],
      [chatCompletionsModel({ model: "m" }), "none, because OpenAI's API"],
      [
        chatCompletionsModel({ model: "m", baseUrl: server.url, body }),
        "chatCompletionsModel options.body.chat_template_kwargs: got",
      ],
    ] as const;
    for (const [model, message] of cases)
      await expect(model.generate(requestsWith(off), callOptions)).rejects.toThrow(message);
    expect(server.received).toEqual([]);
  });
});

it.each(providers)(
  "$name: throws for `no_system_block`, because a server does not report its rendered prompt",
  async ({ open }) => {
    const server = await serve(() => ({ say: "Because." }));
    const prompt = { messages: [{ role: "user", content: "Why?" }], system: "no_system_block" as const };
    const sampling = greedy;
    const model = open({ model: "m", baseUrl: server.url });
    expect(model.isServed).toBe(true);
    await expect(model.generate([{ prompt, sampling }], callOptions)).rejects.toThrow('Write "omit"');
    expect(server.received).toEqual([]);
  },
);

describe("without the client's package", () => {
  it("throws an error that says what to install", async () => {
    vi.resetModules();
    vi.doMock("openai", () => {
      throw new Error("Cannot find package 'openai'");
    });
    const fresh = await import("../index.ts");
    const judge = await judgeGrader({ model: fresh.chatCompletionsModel({ model: "m" }) });
    await expect(judge.check!(callOptions)).rejects.toThrow("Run `npm i openai`.");
    vi.doUnmock("openai");
  });
});

it.each([
  [{ completion_tokens: 7 }, { inputTokens: null, outputTokens: 7 }],
  [{ prompt_tokens: -1, completion_tokens: null }, undefined],
  [undefined, undefined],
])("reads the usage %j of a reply: a count that it lacks is null", async (usage, expected) => {
  const logprobs = { content: [{ token: "a", logprob: -1 }, { token: "b" }] };
  const choices = [{ message: { content: "ab" }, finish_reason: "stop", logprobs }];
  const server = await serve(() => ({ body: JSON.stringify({ choices, usage }) }));
  const counted: number[] = [];
  const [only] = await chatCompletionsModel({ model: "m", baseUrl: server.url }).generate(
    [{ prompt: { messages: [{ role: "user", content: "Why?" }] }, sampling: greedy }],
    { ...callOptions, countTokens: (tokens) => void counted.push(tokens) },
  );
  expect(only!.usage).toEqual(expected);
  // The second token has no log-probability.
  expect([only!.tokenNats, counted]).toEqual([null, []]);
});
