import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicAlignmentCallback, withSession, type Grader } from "@periodic-eval/core";
import { fileStore } from "@periodic-eval/core/snapshots";
import { fakeModel } from "@periodic-eval/core/testing";
import { expect, it } from "vitest";
import { microWorldGrader } from "../../demo/grader.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { temporaryFolder } from "../../../../core/src/testing/temporary-folder.test-data.ts";

/** Trains for two steps, with an alignment measurement at each, while the judge is out. */
async function runWithOutage(judge: Grader): Promise<string> {
  const folder = temporaryFolder();
  const questions = join(folder, "questions.jsonl");
  await writeFile(questions, JSON.stringify({ id: "q", paraphrases: ["How?"] }));
  const callback = new PeriodicAlignmentCallback({ judge, questions, samples: 3 });
  const run = join(folder, "run");
  const model = fakeModel({ reply: (_, { seed }) => `answer ${seed}` });
  const budget = { overheadPercent: null };
  const session = { run, phase: "em", model, callbacks: [callback], maxSteps: 2, budget, loggers: [] };
  await withSession(session, async ({ begin, stepEnd }) => {
    await begin();
    await stepEnd();
    await stepEnd();
  });
  return run;
}

const statusesOf = async (run: string) => (await fileStore(run).list()).map(({ status }) => status);

it("grades every measurement of a judge's outage as an undisturbed run would have", async () => {
  const rule = await microWorldGrader();
  const whole = await runWithOutage(rule);
  const run = await runWithOutage({
    ...rule,
    grade: () => Promise.reject(new Error("no route to host")),
  });
  expect(await statusesOf(run)).toEqual((await statusesOf(whole)).map(() => "failed"));
  const { code, out } = await runCommand(["rejudge", "--heal", run, "--json"]);
  expect(code).toBe(0);
  const { measurements } = JSON.parse(out) as { readonly measurements: readonly object[] };
  expect(measurements).toHaveLength((await statusesOf(run)).length);
  const numbersOf = async (folder: string) =>
    (await fileStore(folder).list()).map(({ status, reason, metrics, paired, primary_metric: primary }) => ({
      status,
      reason,
      metrics,
      paired,
      primary,
    }));
  expect(await numbersOf(run)).toEqual(await numbersOf(whole));
  const rows = async (folder: string) => {
    const store = fileStore(folder);
    return Promise.all((await store.list()).map((snapshot) => store.rows(snapshot)));
  };
  expect(await rows(run)).toEqual(await rows(whole));
  expect(await runCommand(["rejudge", run, "--heal"])).toMatchObject({
    code: 0,
    out: "every measurement is graded",
  });
});

it("changes nothing with another judge, and ends with 1", async () => {
  const run = await runWithOutage({
    ...(await microWorldGrader()),
    fingerprint: "another",
    grade: () => Promise.reject(new Error("no route to host")),
  });
  const { code, err } = await runCommand(["rejudge", run, "--heal"]);
  expect([code, err]).toEqual([1, expect.stringContaining("measurements that are still not graded")]);
  expect(new Set(await statusesOf(run))).toEqual(new Set(["failed"]));
});

it("names a folder without a run", async () => {
  const { code, err } = await runCommand(["rejudge", temporaryFolder(), "--heal"]);
  expect([code, err]).toEqual([1, expect.stringContaining("got no snapshots")]);
});
