import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Evaluator } from "./evaluator.ts";
import { choiceTask, fakeTrainer, replyTask, suiteText } from "../suite/fake-tasks.test-data.ts";
import { pythonJson } from "../harness/results-file.ts";
import { needsPython, python, pythonHas } from "../../../models/src/testing/python.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const root = temporaryFolder(afterAll);
beforeAll(async () => {
  await writeFile(join(root, "suite.yaml"), suiteText);
});

const run = (timestamp: string, weights = "w", sampled = true) => {
  // Python and JavaScript could serialize these values differently as JSON.
  const edition = `“Ünï” \u007f \u2028 \\ / 𝒳 "q" \t: `;
  const tasks = [choiceTask({ edition, documents: 7 }), replyTask({ edition })];
  const kept = sampled ? tasks : tasks.map(({ sample: _sample, ...task }) => task);
  return Evaluator.fromTrainer(fakeTrainer(weights), {
    name: sampled ? "sft" : "plain",
    tasks: Object.fromEntries(kept.map((task) => [task.name, task])),
    suite: join(root, "suite.yaml"),
    results: join(root, "results"),
    now: () => new Date(timestamp),
  }).run();
};

describe.skipIf(!pythonHas("datasets", "lm_eval", "pandas", "pytablewriter"))(
  `lm-evaluation-harness 0.4.13 reads our results (${needsPython("lm_eval")})`,
  () => {
    const ask = (folder: string) =>
      JSON.parse(
        execFileSync(python, [resolve(import.meta.dirname, "lm-eval-reads.test-data.py")], {
          input: JSON.stringify({ folder }),
          encoding: "utf8",
          stdio: "pipe",
        }),
      ) as Record<string, unknown>;

    it("finds the same names, tables, values, standard errors, hashes and samples", async () => {
      await run("2026-01-02T03:04:05.678Z");
      const { run: record, folder } = await run("2026-01-02T03:04:06.000Z", "v");
      const seen = ask(join(root, "results", "jobs"));
      expect(seen).toMatchObject({
        latest: "results_2026-01-02T03-04-06.000Z.json",
        datetimes: ["2026-01-02T03-04-06.000Z"],
        tasks: ["choices_algebra", "choices_law", "choices_physics", "replies"],
        configs: ["choices_algebra", "choices_law", "choices_physics", "replies"],
        types: ["float"],
        hashes: true,
        task_hashes: { choices_algebra: true, choices_law: true, choices_physics: true, replies: true },
        names: [true, ["choices_algebra", "choices_law", "choices_physics", "replies"]],
        frames: {
          choices_law: { metrics: ["acc", "acc_norm"] },
          replies: { metrics: ["exact_match"] },
        },
      });
      // 4 documents of each subject, 6 replies under 2 filters
      expect(seen["datasets"]).toEqual({
        choices_algebra: 4,
        choices_law: 4,
        choices_physics: 4,
        replies: 12,
      });
      const results = JSON.parse(
        await readFile(join(folder, "results_2026-01-02T03-04-06.000Z.json"), "utf8"),
      ) as { readonly results: Readonly<Record<string, Readonly<Record<string, number>>>> };
      const checked = seen["checked"] as Readonly<Record<string, { value: number; stderr: number }>>;
      expect(Object.keys(checked).sort()).toEqual(Object.keys(record.metrics).sort());
      for (const [key, { value, stderr }] of Object.entries(checked)) {
        const [entry, metric] = key.split("/") as [string, string];
        expect(record.metrics[key]).toBeCloseTo(value, 12);
        expect(results.results[entry]![metric]).toBeCloseTo(value, 12);
        expect(results.results[entry]![metric.replace(",", "_stderr,")], key).toBeCloseTo(stderr, 12);
      }
      const rows = (seen["table"] as string)
        .split("\n")
        .map((line) => line.split("|").map((cell) => cell.trim()));
      const cells = rows.filter((row) => row[5] === "acc").map((row) => [row[1], row[3], row[4], row[6]]);
      expect(cells).toEqual([
        ["choices", "none", "1", "↑"],
        ["- choices_humanities", "none", "1", "↑"],
        ["- choices_law", "none", "1", "↑"],
        ["- choices_stem", "none", "1", "↑"],
        ["- choices_algebra", "none", "1", "↑"],
        ["- choices_physics", "none", "1", "↑"],
      ]);
      const filters = rows.filter((row) => row[5] === "exact_match").map((row) => row[3]);
      expect(filters).toEqual(["flexible-extract", "strict-match"]);
      expect(seen["groups"]).toContain("choices_stem");
      expect(seen["groups"]).not.toContain("choices_law");
    });

    it("writes item, prompt and row for tasks without custom samples", async () => {
      const { folder } = await run("2026-01-02T03:04:07.000Z", "w", false);
      const seen = ask(folder);
      expect(seen).toMatchObject({ hashes: true, types: ["float"] });
      const frames = seen["frames"] as Readonly<Record<string, { columns: string[]; first: string[] }>>;
      expect(frames["choices_law"]!.columns).toContain("row");
      expect(frames["choices_law"]!.first[0]).toContain("What is law number 0?\nAnswer:");
    });
  },
);

it("writes JSON as Python's json.dumps(indent=2) does", () => {
  const value = { a: [], b: {}, c: [1, "“x”", null, true], d: { e: 0.5 } };
  // json.dumps({"a": [], "b": {}, "c": [1, "“x”", None, True], "d": {"e": 0.5}}, indent=2, ensure_ascii=False)
  expect(pythonJson(value)).toBe(
    '{\n  "a": [],\n  "b": {},\n  "c": [\n    1,\n    "“x”",\n    null,\n    true\n  ],\n  "d": {\n    "e": 0.5\n  }\n}',
  );
});
