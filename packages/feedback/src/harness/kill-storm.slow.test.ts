import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { namedStream } from "@periodic-eval/core/random";
import { readLines } from "@periodic-eval/store";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { runChild } from "../../../testing/src/killed-child.test-data.ts";
import type { StepLine, SummaryFile } from "./files.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const kills = 10;
const child = fileURLToPath(new URL("kill-storm-child.test-data.ts", import.meta.url));
const root = temporaryFolder(afterAll);
let whole: { readonly outcome: Awaited<ReturnType<typeof outcome>>; readonly milliseconds: number };

const preference = {
  name: "short",
  feedback_string: "Shorter, please.",
  verifier: "no_emoji",
  logprob_pairs: Array.from({ length: 12 }, (_, at) => ({
    prompt: `pair ${at}`,
    chosen: `yes ${at}`,
    rejected: `no ${at}`,
  })),
  train_prompts: ["a", "b", "c"],
  probe_prompts: ["d", "e"],
};

beforeAll(async () => {
  await writeFile(join(root, "short.yaml"), stringify(preference));
  const { milliseconds } = await run(join(root, "whole"));
  whole = { outcome: await outcome(join(root, "whole")), milliseconds };
});

/** Runs the child to its end, or kills it `killAfter` milliseconds after its start. */
const run = (output: string, killAfter?: number) =>
  runChild(child, [output, join(root, "short.yaml")], killAfter);

/**
 * Returns the results of a run that kills must not change. Omits timestamps, and adapter names, which contain a timestamp.
 */
async function outcome(output: string) {
  const lines = async (name: string) =>
    (await readLines(join(output, name, "steps.jsonl"))).map((line) => {
      const { timestamp: _t, timing_s: _s, ...rest } = JSON.parse(line) as StepLine;
      return rest;
    });
  const { preferences } = JSON.parse(await readFile(join(output, "summary.json"), "utf8")) as SummaryFile;
  return {
    short: await lines("short"),
    concise: await lines("concise"),
    summary: Object.entries(preferences).map(([name, summary]) => ({ ...summary, name, lora_id: null })),
    files: (await readdir(output, { recursive: true }))
      // A kill can leave an unfinished checkpoint behind.
      .filter((file) => !file.endsWith("checkpoint.json.tmp"))
      .sort(),
  };
}

it("writes all files of an uninterrupted run", () => {
  expect(whole.outcome.short).toHaveLength(6);
  expect(whole.outcome.concise).toHaveLength(6);
  expect(whole.outcome.files).toEqual([
    ...["concise", "short"].flatMap((name) => [
      name,
      ...["baseline.json", "checkpoint.json", "metadata.json", "steps.jsonl"].map(
        (file) => `${name}/${file}`,
      ),
    ]),
    "summary.json",
  ]);
});

it(
  `loses and repeats no step over ${kills} kills at random moments`,
  { timeout: kills * 60_000 },
  async () => {
    const random = namedStream("feedback-storm");
    for (let left = kills; left > 0;) {
      const output = join(root, `killed-${left}`);
      for (let isKilled = true; isKilled && left > 0;) {
        const before = await readLines(join(output, "short", "steps.jsonl"));
        ({ isKilled } = await run(output, Math.round(random() * whole.milliseconds)));
        // Lines from before the kill are unchanged, timestamps included.
        expect((await readLines(join(output, "short", "steps.jsonl"))).slice(0, before.length)).toEqual(
          before,
        );
        if (isKilled) left -= 1;
      }
      await run(output);
      expect(await outcome(output)).toEqual(whole.outcome);
      await rm(output, { recursive: true });
    }
  },
);
