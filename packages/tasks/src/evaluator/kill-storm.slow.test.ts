import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { namedStream } from "@periodic-eval/core/random";
import { readIfPresent } from "@periodic-eval/store";
import { afterAll, beforeAll, expect, it } from "vitest";
import { compiledChild, runChild } from "../../../testing/src/killed-child.test-data.ts";
import { suiteText } from "../suite/fake-tasks.test-data.ts";
import { readMetrics } from "../results/metrics-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const kills = 10;
const child = compiledChild(new URL("kill-storm-child.test-data.ts", import.meta.url));
const root = temporaryFolder(afterAll);
let whole: { readonly outcome: unknown; readonly milliseconds: number };

beforeAll(async () => {
  await writeFile(join(root, "suite.yaml"), suiteText);
  const { milliseconds } = await evaluate(join(root, "whole"));
  whole = { outcome: await outcome(join(root, "whole")), milliseconds };
});

/** Runs to the end, or kills the process `killAfter` milliseconds after it starts. */
async function evaluate(folder: string, killAfter?: number) {
  await mkdir(folder, { recursive: true });
  return runChild(
    child,
    [join(folder, "results"), join(root, "suite.yaml"), join(folder, "calls")],
    killAfter,
  );
}

/** Returns everything that kills must not change: the run without its timestamp, and every sample. */
async function outcome(folder: string): Promise<unknown> {
  const results = join(folder, "results");
  const { runs } = await readMetrics(join(results, "metrics.json"));
  const job = join(results, "jobs", "sft");
  const files = (await readdir(job)).sort();
  const samples = files.filter((file) => file.startsWith("samples_"));
  return {
    runs: runs.map((run) => ({ ...run, timestamp: null })),
    samples: await Promise.all(samples.map((file) => readFile(join(job, file), "utf8"))),
    files: files.map((file) => file.replace(/_[^_]+$/, "")),
    left: (await readdir(results)).sort(),
  };
}

const doneIn = async (folder: string): Promise<readonly string[]> => {
  const partial = await readIfPresent(join(folder, "results", "metrics.sft.partial.json"));
  return Object.keys((JSON.parse(partial ?? '{"tasks":{}}') as { readonly tasks: object }).tasks);
};

it("measures the reference run, 12 questions and 6 replies, with 2 per call", async () => {
  expect(await readFile(join(root, "whole", "calls"), "utf8")).toBe(
    "choices\n".repeat(6) + "replies\n".repeat(3),
  );
  expect(whole.outcome).toMatchObject({ runs: [{ name: "sft" }], left: ["jobs", "metrics.json"] });
});

it(
  `neither loses nor repeats a finished task over ${kills} kills at random times`,
  { timeout: kills * 60_000 },
  async () => {
    const random = namedStream("suite-storm");
    for (let left = kills; left > 0;) {
      const folder = join(root, `killed-${left}`);
      for (let isKilled = true; isKilled && left > 0;) {
        const done = await doneIn(folder);
        const before = (await readIfPresent(join(folder, "calls"))) ?? "";
        ({ isKilled } = await evaluate(folder, Math.round(random() * whole.milliseconds)));
        const called = ((await readIfPresent(join(folder, "calls"))) ?? "").slice(before.length).split("\n");
        for (const task of done) expect(called).not.toContain(task);
        if (isKilled) left -= 1;
      }
      await evaluate(folder);
      expect(await outcome(folder)).toEqual(whole.outcome);
      await rm(folder, { recursive: true });
    }
  },
);
