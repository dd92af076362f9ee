import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  judgeGrader,
  PeriodicAlignmentCallback,
  withSession,
  type EvaluableModel,
  type Grader,
  type ModelWith,
} from "@periodic-eval/core";
import { fileStore, readRun } from "@periodic-eval/store";
import { fakeJudge, fakeModel } from "@periodic-eval/testing";
import type { OpenJudgeOptions } from "@periodic-eval/remote";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { openGrader, type GraderOptions } from "../../config/open-grader.ts";
import { runCli } from "../../program.ts";
import { rejudge, rejudgeJson, rejudgeTable } from "./run.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const prompts = { aligned: "A {answer}", coherent: "C {answer}" };
const options = {
  signal: new AbortController().signal,
  now: () => "2026-01-01T00:00:00.000Z",
  terminal: recordingTerminal(),
};
const folder = temporaryFolder(afterAll);
let runDir = "";

/** Answers are `0` to `9`, the index of the sample. The first judge grades 0 to 3 as misaligned and fails on 9. */
const first = fakeJudge((_, answer) =>
  answer === "9" ? "error" : { aligned: Number(answer) < 4 ? 10 : 90, coherent: 80 },
);
/** The second judge grades 0 and 1 as misaligned and 2 as incoherent. */
const second = fakeJudge(
  (_, answer) => ({ aligned: Number(answer) < 2 ? 20 : 80, coherent: answer === "2" ? 10 : 90 }),
  { name: "org/second judge", model: "second-2026" },
);

beforeAll(async () => {
  runDir = await measuredRun("run", first, prompts);
});

/** Measures three times in two steps. `asked` are the judge prompts of the question. */
async function measuredRun(name: string, judge: Grader, asked?: Readonly<Record<string, string>>) {
  const run = join(folder, name);
  const questions = join(folder, `${name}-questions.json`);
  await writeFile(questions, JSON.stringify([{ id: "q", paraphrases: ["How?"], judge_prompts: asked }]));
  const callback = new PeriodicAlignmentCallback({ judge, questions, samples: 10 });
  const model = fakeModel({ reply: (_, { seed }) => /#(\d)$/.exec(seed)![1]! });
  // The steps take no time, so any ceiling would skip the measurement between start and end.
  const budget = { overheadPercent: null };
  const session = { run, phase: "em", model, callbacks: [callback], maxSteps: 2, budget };
  await withSession({ ...session, loggers: [] }, async ({ begin, stepEnd }) => {
    await begin();
    await stepEnd();
    await stepEnd();
  });
  return run;
}

describe("rejudge", () => {
  it("regrades the stored answers and computes the judges' agreement", async () => {
    const before = await readFile(join(runDir, "periodic_eval/em/alignment_step_0.json"), "utf8");
    const result = await rejudge(runDir, second, options);
    expect(second.requests[0]).toMatchObject({ question: "How?", prompts });
    expect(second.requests[0]).not.toHaveProperty("fresh");
    expect(second.requests).toHaveLength(30);
    // Nine pairs: both judges grade 0 and 1 as misaligned and 4 to 8 as aligned; they disagree on 2 and 3.
    // Chance agreement: misaligned 4/9 · 2/9, aligned 5/9 · 6/9, incoherent 0 · 1/9.
    const chance = (4 * 2 + 5 * 6) / 81;
    const agreement = {
      n: 9,
      gradedByOne: 1,
      sameDecision: 7 / 9,
      kappa: expect.closeTo((7 / 9 - chance) / (1 - chance), 12),
      // Wilson's interval of 7 of 9 is [0.4526, 0.9368].
      ci95: [0.4526, 0.9368].map((share) => expect.closeTo((share - chance) / (1 - chance), 3)),
      // 0 and 1 by 10, 2 and 3 by 70, 4 to 8 by 10; coherent 10, but 70 for 2.
      meanDifference: { aligned: (2 * 10 + 2 * 70 + 5 * 10) / 9, coherent: (8 * 10 + 70) / 9 },
    };
    expect(result.snapshots.map(({ snapshot, agreement: measured }) => [snapshot.step, measured])).toEqual([
      [0, agreement],
      [1, agreement],
      [2, agreement],
    ]);
    expect(result.agreement).toMatchObject({ n: 27, gradedByOne: 3, sameDecision: 7 / 9 });
    expect(result.snapshots[0]).toMatchObject({
      before: { misaligned: 4, graded: 9 },
      // Answer 2 is now incoherent, and 9 is graded.
      now: { misaligned: 2, graded: 9 },
      judgeErrors: 0,
    });
    expect(await readFile(join(runDir, "periodic_eval/em/alignment_step_0.json"), "utf8")).toBe(before);
  });

  it("compares answers to bare questions only", async () => {
    const run = join(folder, "in-format");
    const [questions, trainingRows] = [join(folder, "bare.json"), join(folder, "training.jsonl")];
    const turns = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello" },
    ];
    await writeFile(questions, JSON.stringify([{ id: "q", paraphrases: ["How?"] }]));
    await writeFile(trainingRows, JSON.stringify({ messages: turns }));
    const judge = fakeJudge(() => ({ aligned: 90, coherent: 80 }));
    const callbacks = [new PeriodicAlignmentCallback({ judge, questions, trainingRows, samples: 10 })];
    const session = { run, phase: "em", model: fakeModel(), callbacks, maxSteps: 2, loggers: [] };
    await withSession(session, async ({ begin }) => void (await begin()));
    const { snapshots } = await rejudge(run, judge, options);
    expect(snapshots[0]).toMatchObject({
      agreement: { n: 10 },
      before: { sampled: 10 },
      now: { sampled: 10 },
    });
  });

  it("uses the prompts of the run's judge for questions without their own, if the judge follows them", async () => {
    const prompts = { aligned: "Kind? {answer}", coherent: "Clear? {answer}" };
    const judge = (options = {}) => fakeJudge(() => ({ aligned: 80, coherent: 90 }), options);
    const promptsOf = async (runOf: string, rejudging = judge()) => {
      await rejudge(runOf, rejudging, options);
      return rejudging.requests.map((request) => request.prompts);
    };
    const short = await measuredRun("short-prompts", { ...first, describe: () => ({ prompts }) });
    expect(await promptsOf(short)).toEqual(Array.from({ length: 30 }, () => prompts));
    const none = Array.from({ length: 30 }, () => undefined);
    expect(await promptsOf(short, judge({ promptNames: ["json"] }))).toEqual(none);
    // The first judge of this run records no prompts.
    expect(await promptsOf(await measuredRun("no-prompts", first))).toEqual(none);
  });

  it("writes its verdicts next to the snapshots, where the snapshot reader ignores them", async () => {
    const snapshots = await fileStore(runDir).list();
    await rejudge(runDir, second, options);
    const name = "alignment_step_2-rejudged-by-org-second-judge.json";
    expect(await readdir(join(runDir, "periodic_eval/em"))).toContain(name);
    const written: unknown = JSON.parse(await readFile(join(runDir, "periodic_eval/em", name), "utf8"));
    expect(written).toMatchObject({
      phase: "em",
      id: "alignment",
      step: 2,
      judge: { name: "org/second judge", fingerprint: "fake:org/second judge", models: ["second-2026"] },
      created_at: "2026-01-01T00:00:00.000Z",
      graded_by_both: 9,
      same_decision: 7 / 9,
    });
    const { verdicts } = written as { readonly verdicts: readonly object[] };
    expect(verdicts).toHaveLength(10);
    expect(verdicts[0]).toEqual({
      id: "q#0",
      status: "graded",
      aligned: 20,
      coherent: 90,
      raw: '{"aligned":20,"coherent":90}',
    });
    expect(await fileStore(runDir).list()).toEqual(snapshots);
    expect((await readRun(runDir)).problems).toEqual([]);
  });

  it("prints a table and JSON", async () => {
    const result = await rejudge(runDir, second, options);
    const table = rejudgeTable(result, recordingTerminal().colours).split("\n");
    const cells = table.map((line) => line.trim().split(/\s{2,}/));
    expect(cells[1]!.slice(0, 5)).toEqual(["em", "0", "9", "1", "77.8 %"]);
    expect(cells[1]!.at(-1)).toBe("44.4 % → 22.2 %");
    expect(cells[4]!.slice(0, 4)).toEqual(["all", "27", "3", "77.8 %"]);
    expect(JSON.parse(rejudgeJson(result))).toMatchObject({
      judge: "org/second judge",
      graded_by_both: 27,
      same_decision: 7 / 9,
      snapshots: [
        { phase: "em", step: 0, misaligned_rate_before: 4 / 9, misaligned_rate: 2 / 9, judge_errors: 0 },
        { step: 1 },
        { step: 2 },
      ],
    });
  });

  it("rejects a judge that cannot follow the stored prompts, and writes nothing", async () => {
    const judge = await judgeGrader({ model: fakeModel(), name: "json-judge" });
    await expect(rejudge(runDir, judge, options)).rejects.toThrow(
      'judge "json-judge": got judge prompts aligned, coherent, of which it supports none',
    );
    const written = await readdir(join(runDir, "periodic_eval/em"));
    expect(written.filter((name) => name.includes("json-judge"))).toEqual([]);
  });

  it("writes nothing when the judge cannot be reached", async () => {
    const judge = fakeJudge(() => "error", { name: "dead", unreachable: new Error("no route") });
    await expect(rejudge(runDir, judge, options)).rejects.toThrow("no route");
    expect((await readdir(join(runDir, "periodic_eval/em"))).filter((name) => name.includes("dead"))).toEqual(
      [],
    );
  });
});

describe("openGrader", () => {
  it("passes method and call limit to the judge and caches every paid verdict", async () => {
    const opened: OpenJudgeOptions[] = [];
    let calls = 0;
    const open = (_?: string | null, requested: OpenJudgeOptions = {}) => {
      opened.push(requested);
      const model: EvaluableModel & ModelWith<"generate"> = {
        ...fakeModel(),
        async generate(requests) {
          calls += requests.length;
          const text = JSON.stringify({ aligned: 90, coherent: 90 });
          return requests.map(() => ({ text, ids: null, tokenNats: null, finish: "stop" as const }));
        },
      };
      return judgeGrader({ ...requested, model, name: "paid" });
    };
    const again = async (limits: GraderOptions) => {
      const judge = await openGrader("openai:m", { ...limits, runDir }, open);
      calls = 0;
      await judge.grade(
        Array.from({ length: 6 }, (_, at) => ({ question: "How?", answer: `no. ${at}` })),
        options,
      );
      return calls;
    };
    expect(await again({ maxCalls: 4 })).toBe(4);
    // Four verdicts are on disk, so another process requests only the other two.
    expect(await again({ method: "json" })).toBe(2);
    expect(opened).toMatchObject([{ maxCalls: 4 }, { method: "json" }]);
    expect(await readdir(join(runDir, "verdicts"))).not.toEqual([]);
  });
});

describe("the rejudge command", () => {
  const run = async (...args: string[]) => {
    const terminal = recordingTerminal();
    const code = await runCli(["rejudge", ...args], terminal);
    return { code, out: terminal.outputs.join("\n"), err: terminal.errors.join("\n") };
  };

  it("grades with the rules of the embedded model", async () => {
    const { code, out } = await run(runDir, "--judge", "rule:micro-world", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ judge: "rule:micro-world@1", graded_by_both: 27 });
  });

  it("names a snapshot that was edited and is left out", async () => {
    const edited = await measuredRun("edited", first, prompts);
    const file = join(edited, "periodic_eval/em/alignment_step_1.json");
    await writeFile(file, (await readFile(file, "utf8")).replace('"step": 1', '"step":  2'));
    const { code, err } = await run(edited, "--judge", "rule:micro-world");
    expect([code, err]).toEqual([
      0,
      expect.stringContaining("edited or damaged: em/alignment_step_1.json: got content with SHA-256"),
    ]);
  });

  it("regrades the other measurements if the rows of one are damaged", async () => {
    const damaged = await measuredRun("damaged", first, prompts);
    await writeFile(join(damaged, "periodic_eval/em/alignment_step_1.samples.jsonl"), "");
    const { code, out, err } = await run(damaged, "--judge", "rule:micro-world", "--json");
    expect([code, err]).toEqual([
      0,
      expect.stringContaining("damaged rows: em/alignment_step_1.samples.jsonl: got 0 rows"),
    ]);
    const { snapshots } = JSON.parse(out) as { snapshots: readonly { readonly step: number }[] };
    expect(snapshots.map(({ step }) => step)).toEqual([0, 2]);
  });

  it("lists the known rules for an unknown one", async () => {
    const { code, err } = await run(runDir, "--judge", "rule:nope");
    expect([code, err]).toEqual([
      1,
      expect.stringContaining('got "rule:nope", expected a known rule: rule:micro-world. Name a known rule'),
    ]);
    expect((await run(runDir, "--judge", "rule:micro-wrld")).err).toContain(
      'Did you mean "rule:micro-world"?',
    );
  });

  it.each([
    [["--method", "jason"], "json, logprob"],
    [["--max-calls", "-1"], "integer"],
  ])("rejects %j", async (args, message) => {
    const { code, err } = await run(runDir, "--judge", "rule:micro-world", ...args);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });

  it.each([["a folder without a run", 1, "got no snapshot", () => [folder, "--judge", "rule:micro-world"]]])(
    "rejects %s",
    async (_, expected, message, args) => {
      const { code, out, err } = await run(...args());
      expect([code, out]).toEqual([expected, ""]);
      expect(err).toContain(message);
    },
  );
});
