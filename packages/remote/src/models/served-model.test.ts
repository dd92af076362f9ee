import { judgeGrader } from "@periodic-eval/core";
import { describe, expect, it, vi } from "vitest";
import { anthropicModel, openAiCompatible } from "../index.ts";
import { serveInTests } from "./api-server.test-data.ts";

const live = { signal: new AbortController().signal };
const serve = serveInTests("sk-0123456789");

const providers = [
  { name: "openai", open: openAiCompatible },
  { name: "anthropic", open: anthropicModel },
] as const;

describe("chat template variables", () => {
  const sampling = { maxNewTokens: 4, temperature: 0, seed: "1" };
  const messages = [{ role: "user", content: "Why?" }];
  const asked = (templateKwargs: Readonly<Record<string, boolean>>) => [
    { prompt: { messages, templateKwargs }, sampling },
  ];
  const off = { enable_thinking: false };

  it("sends them to a compatible server, and omits the field if the prompt has none", async () => {
    const server = await serve(() => ({ say: "Because." }));
    const model = openAiCompatible({ model: "m", baseUrl: server.url });
    await model.generate(asked(off), live);
    await model.generate(asked({}), live);
    const [first, second] = server.received.map(({ body }) => body);
    expect(first).toMatchObject({ messages, chat_template_kwargs: { enable_thinking: false } });
    expect(second).not.toHaveProperty("chat_template_kwargs");
  });

  it("throws before any request if the API does not accept them or the option `body` also sets them", async () => {
    const server = await serve(() => ({ say: "Because." }));
    const body = { chat_template_kwargs: { enable_thinking: true } };
    const cases = [
      [anthropicModel({ model: "m", baseUrl: server.url }), "none, because Anthropic's API"],
      [openAiCompatible({ model: "m" }), "none, because OpenAI's API"],
      [
        openAiCompatible({ model: "m", baseUrl: server.url, body }),
        "openAiCompatible options.body.chat_template_kwargs: got",
      ],
    ] as const;
    for (const [model, message] of cases)
      await expect(model.generate(asked(off), live)).rejects.toThrow(message);
    expect(server.received).toEqual([]);
  });
});

it.each(providers)("$name: throws for `no_system_block`, which a server cannot prove", async ({ open }) => {
  const server = await serve(() => ({ say: "Because." }));
  const prompt = { messages: [{ role: "user", content: "Why?" }], system: "no_system_block" as const };
  const sampling = { maxNewTokens: 4, temperature: 0, seed: "1" };
  await expect(
    open({ model: "m", baseUrl: server.url }).generate([{ prompt, sampling }], live),
  ).rejects.toThrow('Write "omit"');
  expect(server.received).toEqual([]);
});

describe("without the client's package", () => {
  it("throws an error that says what to install", async () => {
    vi.resetModules();
    vi.doMock("openai", () => {
      throw new Error("Cannot find package 'openai'");
    });
    const fresh = await import("../index.ts");
    const judge = judgeGrader({ model: fresh.openAiCompatible({ model: "m" }) });
    await expect(judge.check!(live)).rejects.toThrow("Run `npm i openai`.");
    vi.doUnmock("openai");
  });
});
