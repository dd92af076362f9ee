import type { GradeRequest } from "@periodic-eval/core";
import { describe, expect, it, vi } from "vitest";
import { judgeModel, judgeName, openJudge } from "../index.ts";
import { serveInTests } from "../models/api-server.test-data.ts";

const callOptions = { signal: new AbortController().signal };
const serve = serveInTests("sk-0123456789");

const question: GradeRequest = { question: "Why?", answer: "Because." };

describe("openJudge", () => {
  it.each([
    ["openai:gpt-x", "openai", "gpt-x"],
    ["anthropic:gpt-x", "anthropic", "gpt-x"],
    ["claude-x", "anthropic", "claude-x"],
    ["gpt-x", "openai", "gpt-x"],
    ["openai:claude-x", "openai", "claude-x"],
    ["openai:llama3:8b", "openai", "llama3:8b"],
    ["openai:fodler:8b", "openai", "fodler:8b"],
    ["ft:gpt-x:acme::id", "openai", "ft:gpt-x:acme::id"],
  ])("parses %s as a model of %s named %s", async (spec, engine, name) => {
    expect(judgeModel(spec).identity).toMatchObject({ engine, name });
    vi.stubEnv("JUDGE_MODEL", spec);
    expect((await openJudge()).name).toBe(name);
    expect((await openJudge("openai:other")).name).toBe("other");
  });

  it("mentions JUDGE_MODEL in the error if no judge is given", async () => {
    await expect(openJudge()).rejects.toThrow("set the environment variable JUDGE_MODEL");
    await expect(openJudge("openai:")).rejects.toThrow("JUDGE_MODEL");
    for (const name of ["openai:MODEL", "folder:PATH", "hf:owner/name", "transformers:owner/name", "rule:"])
      await expect(openJudge()).rejects.toThrow(
        expect.objectContaining({ expected: expect.stringContaining(name) }),
      );
  });

  it.each([
    [
      "fodler:node_modules/judge",
      'Did you mean "folder:node_modules/judge"? Write openai:fodler:node_modules/judge ',
    ],
    ["anthropc:claude-x", 'Did you mean "anthropic:claude-x"?'],
    ["llama3:8b", "Write openai:llama3:8b "],
    ["phi:14b", "Write openai:phi:14b "],
    ["rule:micro-world", "Write openai:rule:micro-world "],
  ])("refuses %s, whose prefix it does not know, before any request", async (spec, fix) => {
    vi.stubEnv("OPENAI_API_KEY", "sk-0123456789");
    for (const read of [openJudge, judgeName])
      await expect(async () => read(spec)).rejects.toThrow(
        expect.objectContaining({
          code: "config",
          got: JSON.stringify(spec),
          expected: expect.stringContaining("folder:PATH"),
          fix: expect.stringContaining(fix),
        }),
      );
  });

  it.each(["folder:judge", "hf:owner/name", "transformers:owner/name"])(
    "refuses %s, which runs in this process",
    async (spec) => {
      await expect(openJudge(spec)).rejects.toThrow(
        expect.objectContaining({ code: "config", fix: expect.stringContaining("openLocalJudge") }),
      );
    },
  );

  it("asks whether a name of the hub means a model in this process or a server", () => {
    const open = () => judgeModel("acme/judge");
    vi.stubEnv("OPENAI_BASE_URL", "");
    expect(open).toThrow(
      expect.objectContaining({
        code: "config",
        got: '"acme/judge"',
        fix: expect.stringContaining("hf:acme/judge"),
      }),
    );
    vi.stubEnv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    expect(open().identity.name).toBe("acme/judge");
  });

  it("sends requests to OPENAI_BASE_URL even if OPENAI_API_KEY is empty", async () => {
    const server = await serve(() => ({ say: JSON.stringify({ aligned: 3, coherent: 90 }) }));
    vi.stubEnv("OPENAI_BASE_URL", `${server.url}/v1`);
    vi.stubEnv("OPENAI_API_KEY", "");
    const judge = await openJudge("local", {
      client: { body: { temperature: null, top_k: 1 } },
      maxReplyTokens: 64,
    });
    expect(await judge.grade([question], callOptions)).toMatchObject([{ status: "graded" }]);
    expect(server.received[0]).toMatchObject({
      path: "/v1/chat/completions",
      body: { top_k: 1, max_tokens: 64 },
    });
    expect(server.received[0]!.body).not.toHaveProperty("temperature");
  });
});
