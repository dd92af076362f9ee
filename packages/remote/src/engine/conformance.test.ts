import type { EvaluableModel } from "@periodic-eval/core";
import { fakeModel, fakeTokenizer, modelConformance } from "@periodic-eval/testing";
import { describe, expect, it } from "vitest";
import { openAICompatible, vllm } from "../index.ts";
import { scriptedServer } from "./scripted-server.test-data.ts";

const signal = () => new AbortController().signal;

describe.each([
  ["vllm", vllm],
  ["openAICompatible", openAICompatible],
])("%s", (name, open) => {
  const tokenizer = fakeTokenizer({ beginOfText: name === "vllm" });
  const inProcess = fakeModel({ tokenizer });
  const connect = async (): Promise<EvaluableModel> => {
    const { url } = await scriptedServer({ model: inProcess });
    return open({ urls: url, model: "base", tokenizer });
  };
  for (const check of modelConformance(connect)) it(check.name, check.run);

  it("equals the model whose numbers the server returns", async () => {
    const served = await connect();
    const text = (length: number) => ({ text: "a long story ".repeat(20).slice(0, length) });
    const requests = [1, 2, 60, 120].flatMap((length) =>
      [" and", " so"].map((continuation) => ({ context: text(length), continuation, greedyIds: true })),
    );
    expect(await served.logLikelihoods!(requests, { signal: signal() })).toEqual(
      await inProcess.logLikelihoods(requests, { signal: signal() }),
    );
    const asked = [{ prompt: text(30), candidates: [5, 1, 250, 5] }];
    const [next] = await served.nextToken!(asked, { signal: signal() });
    expect(next!.nats).toEqual((await inProcess.nextToken(asked, { signal: signal() }))[0]!.nats);
  });

  it("cuts contexts as a model in memory with its context length does", async () => {
    const served = await connect();
    expect(served.contextLength).toBe(126);
    const short = fakeModel({ tokenizer, contextLength: 126 });
    const requests = [100, 123, 124, 300].map((length) => ({
      context: { ids: Array.from({ length }, (_, index) => index % 200) },
      continuation: { ids: [7, 8, 9] },
    }));
    expect(await served.logLikelihoods!(requests, { signal: signal() })).toEqual(
      await short.logLikelihoods(requests, { signal: signal() }),
    );
  });
});
