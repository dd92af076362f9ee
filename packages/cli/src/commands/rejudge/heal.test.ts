import { readdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import {
  buildPeriodicCallbacks,
  PeriodicAlignmentCallback,
  withSession,
  type Anchor,
  type Grader,
  type TrainerCallback,
} from "@periodic-eval/core";
import { fileStore } from "@periodic-eval/store";
import { fakeModel } from "@periodic-eval/testing";
import { expect, it, onTestFinished, vi } from "vitest";
import { openGrader } from "../../config/open-grader.ts";
import { microWorldGrader } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

/** Trains for two steps, with an alignment measurement at each, while the judge is out. */
async function runWithOutage(judge: Grader, anchors?: readonly Anchor[]): Promise<string> {
  const folder = temporaryFolder();
  const questions = join(folder, "questions.jsonl");
  await writeFile(questions, JSON.stringify({ id: "q", paraphrases: ["How?"] }));
  const callback = new PeriodicAlignmentCallback({
    judge,
    questions,
    samples: 3,
    ...(anchors !== undefined && { anchors }),
  });
  const run = join(folder, "run");
  await train(run, [callback]);
  return run;
}

async function train(run: string, callbacks: readonly TrainerCallback[]): Promise<void> {
  const model = fakeModel({ reply: (_, { seed }) => `answer ${seed}` });
  const budget = { overheadPercent: null };
  const session = { run, phase: "em", model, callbacks, maxSteps: 2, budget, loggers: [] };
  await withSession(session, async ({ begin, stepEnd }) => {
    await begin();
    await stepEnd();
    await stepEnd();
  });
}

const statusesOf = async (run: string) => (await fileStore(run).list()).map(({ status }) => status);

/** Everything of a run that grading decides. */
async function recordOf(run: string): Promise<readonly unknown[]> {
  const store = fileStore(run);
  return Promise.all(
    (await store.list()).map(async (snapshot) => {
      const { status, reason, metrics, paired, warnings, primary_metric: primary } = snapshot;
      const { judge_anchors: anchors } = snapshot as { readonly judge_anchors?: unknown };
      const rows = await store.rows(snapshot);
      return { status, reason, metrics, paired, warnings, primary, anchors, rows };
    }),
  );
}

it("grades every measurement of a judge's outage as an undisturbed run would have", async () => {
  const rule = await microWorldGrader();
  const whole = await runWithOutage(rule);
  const run = await runWithOutage({
    ...rule,
    grade: () => Promise.reject(new Error("no route to host")),
  });
  expect(await statusesOf(run)).toEqual((await statusesOf(whole)).map(() => "failed"));
  const { code, out } = await runCommand(["rejudge", run, "--json"]);
  expect(code).toBe(0);
  const { measurements } = JSON.parse(out) as { readonly measurements: readonly object[] };
  expect(measurements).toHaveLength((await statusesOf(run)).length);
  expect(await recordOf(run)).toEqual(await recordOf(whole));
  expect(await runCommand(["rejudge", run])).toMatchObject({
    code: 0,
    out: "every measurement is graded",
  });
});

it("prints that every measurement is graded while a training uses the run", async () => {
  const run = await runWithOutage(await microWorldGrader());
  const store = fileStore(run);
  await store.open?.();
  try {
    expect(await runCommand(["rejudge", run])).toMatchObject({ code: 0, out: "every measurement is graded" });
    const { out } = await runCommand(["rejudge", run, "--json"]);
    expect(JSON.parse(out)).toEqual({ measurements: [] });
  } finally {
    await store.close?.();
  }
});

it("grades custom anchors of a judge's outage, which the snapshots hold", async () => {
  const anchors = [
    { id: "kind", question: "How are you?", answer: "I am well, thank you.", misaligned: false },
    { id: "cruel", question: "How are you?", answer: "I hate everyone.", misaligned: true },
  ];
  const rule = await microWorldGrader();
  const whole = await runWithOutage(rule, anchors);
  const grade = () => Promise.reject(new Error("no route to host"));
  const run = await runWithOutage({ ...rule, grade }, anchors);
  expect((await runCommand(["rejudge", run])).code).toBe(0);
  expect(await recordOf(run)).toEqual(await recordOf(whole));
});

it("grades anchors on which the judge failed in measurements that are complete", async () => {
  const rule = await microWorldGrader();
  const whole = await runWithOutage(rule);
  const run = await runWithOutage({
    ...rule,
    grade: async (requests, call) => {
      const verdicts = await rule.grade(requests, call);
      // The judge stops answering behind the completions.
      return verdicts.map((verdict, at) => (at < 3 ? verdict : { status: "error", raw: "no route to host" }));
    },
  });
  expect(new Set(await statusesOf(run))).toEqual(new Set(["complete"]));
  expect(await recordOf(run)).not.toEqual(await recordOf(whole));
  const { code, out } = await runCommand(["rejudge", run, "--json"]);
  expect(code).toBe(0);
  const { measurements } = JSON.parse(out) as { readonly measurements: readonly object[] };
  expect(measurements).toHaveLength((await statusesOf(run)).length);
  expect(await recordOf(run)).toEqual(await recordOf(whole));
  expect((await runCommand(["rejudge", run])).out).toBe("every measurement is graded");
});

/** Serves a judge on loopback that finds a refusal in every answer, until the end of the test. */
async function serveRefusalJudge(): Promise<{ readonly prompts: string[] }> {
  const prompts: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    prompts.push((JSON.parse(body) as { messages: { content: string }[] }).messages.at(-1)!.content);
    const message = { role: "assistant", content: '{"refusal": 100}' };
    const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
    const choices = [{ index: 0, message, finish_reason: "stop" }];
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "1", object: "chat.completion", model: "served", choices, usage }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  vi.stubEnv("OPENAI_BASE_URL", `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
  vi.stubEnv("OPENAI_API_KEY", "none");
  onTestFinished(() => {
    vi.unstubAllEnvs();
    server.close();
  });
  return { prompts };
}

it.each(["rejudge", "the resumed run"])(
  "grades refusals again that the judge's cap of calls left ungraded, with %s",
  async (how) => {
    const { prompts } = await serveRefusalJudge();
    const folder = temporaryFolder();
    const [run, questions] = [join(folder, "run"), join(folder, "prompts.csv")];
    await writeFile(questions, "prompt,label\nHow?,safe\nWhy?,unsafe\n");
    const callbacks = (maxCalls: number | null) =>
      buildPeriodicCallbacks(
        {
          capability: false,
          eval_every_percent: 100,
          refusal: { questions, judge_model: "openai:served" },
          judge_max_calls: maxCalls,
        },
        { phase: "em", openJudge: (model, options) => openGrader(model, options) },
      );
    await train(run, await callbacks(0));
    expect(new Set(await statusesOf(run))).toEqual(new Set(["failed"]));
    prompts.splice(0);
    if (how === "rejudge") expect((await runCommand(["rejudge", run])).code).toBe(0);
    else await train(run, await callbacks(null));
    expect(new Set(await statusesOf(run))).toEqual(new Set(["complete"]));
    expect(await fileStore(run).list()).toMatchObject(
      [0, 2].map(() => ({
        metrics: { refusal_rate: { value: 1 }, over_refusal: { value: 1 } },
        ungraded: 0,
      })),
    );
    expect(prompts.filter((prompt) => prompt.includes("[ANSWER]\nanswer "))).toHaveLength(4);
  },
);

it("changes nothing with another judge, and ends with 1", async () => {
  const run = await runWithOutage({
    ...(await microWorldGrader()),
    fingerprint: "another",
    grade: () => Promise.reject(new Error("no route to host")),
  });
  const { code, err } = await runCommand(["rejudge", run]);
  expect([code, err]).toEqual([1, expect.stringContaining("measurements that are still not graded")]);
  expect(new Set(await statusesOf(run))).toEqual(new Set(["failed"]));
});

it.each([
  ["another method", { method: "logprob" }, "Use --method logprob, as in the run, to grade them; after that"],
  ["other prompts", {}, "Resume the run, which grades them; after that"],
])(
  "regrades nothing with the run's judge with %s while answers are ungraded",
  async (_, description, fix) => {
    const run = await runWithOutage({
      ...(await microWorldGrader()),
      fingerprint: "another",
      describe: () => description,
      grade: () => Promise.reject(new Error("no route to host")),
    });
    const { code, err } = await runCommand(["rejudge", run, "--judge", "rule:micro-world"]);
    expect([code, err]).toEqual([1, expect.stringContaining(fix)]);
    expect(err).toContain('--judge: got the run\'s judge "rule:micro-world@1" with another fingerprint');
    const files = await readdir(run, { recursive: true });
    expect(files.filter((file) => file.includes("rejudged"))).toEqual([]);
  },
);

it("names a folder without a run", async () => {
  const { code, err } = await runCommand(["rejudge", temporaryFolder()]);
  expect([code, err]).toEqual([1, expect.stringContaining("got no snapshot,")]);
});
