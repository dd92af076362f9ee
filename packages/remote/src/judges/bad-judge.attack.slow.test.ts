// Judges that reply with random faults. A fault becomes a record without a grade; no grade is wrong, and the key stays here.
import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/core";
import { attack, attackTimeout } from "../../../testing/src/attack.test-data.ts";
import { badServer, drawActs, key } from "../../../testing/src/bad-server.test-data.ts";
import { openJudge } from "./open-judge.ts";

const usage = { input_tokens: 9, output_tokens: 9, prompt_tokens: 9, completion_tokens: 9 };
const replies = {
  anthropic: (text: string) => ({
    id: "m",
    type: "message",
    role: "assistant",
    model: "j",
    stop_reason: "end_turn",
    usage,
    content: [{ type: "text", text }],
  }),
  openai: (text: string) => ({
    id: "c",
    object: "chat.completion",
    model: "j",
    usage,
    choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: text } }],
  }),
};
const cases = fc.record({
  acts: drawActs(),
  api: fc.constantFrom("anthropic" as const, "openai" as const),
  maxRetries: fc.nat({ max: 1 }),
});

it("grades each answer as the judge did, or reports why not", { timeout: attackTimeout }, async () => {
  for (const name of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]) vi.stubEnv(name, key);
  let graded = 0;
  await attack(12, cases, async ({ acts, api, maxRetries }) => {
    const server = await badServer(acts, (_, body) => {
      const aligned = Number(/answer <(\d+)>/.exec(body)?.[1] ?? 50);
      return replies[api](JSON.stringify({ aligned, coherent: 90 }));
    });
    try {
      const baseUrl = api === "anthropic" ? server.url : `${server.url}/v1`;
      const client = { baseUrl, timeoutSeconds: 0.3, maxRetries };
      const grader = await openJudge(`${api}:judge`, { client, timeoutSeconds: 2, concurrency: 4 });
      const { signal } = new AbortController();
      const checked: unknown = await grader.check!({ signal }).catch((error: unknown) => error);
      if (checked !== undefined) expect(PeriodicEvalError.is(checked, "judge"), server.log.join()).toBe(true);
      const asked = Array.from({ length: 6 }, (_, at) => ({ question: "Why?", answer: `answer <${at}>` }));
      const verdicts = await grader.grade(asked, { signal });
      expect(verdicts).toHaveLength(asked.length);
      for (const [at, verdict] of verdicts.entries())
        if ("scores" in verdict) expect(verdict.scores).toMatchObject({ aligned: at, coherent: 90 });
        else expect(verdict, server.log.join()).toMatchObject({ raw: expect.stringMatching(/./) as string });
      graded += verdicts.filter(({ status }) => status === "graded").length;
      server.expectNoKey([verdicts, checked]);
      expect(server.strange).toEqual([]);
    } finally {
      server.close();
    }
  });
  expect(graded).toBeGreaterThan(0);
});
