import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { Evaluator } from "../evaluator/evaluator.ts";
import { choiceTask, fakeTrainer, replyTask, suiteText } from "../suite/fake-tasks.test-data.ts";
import type { MetricsRun } from "./metrics-file.ts";
import { readSamples } from "./read-samples.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let folder: string;
let run: MetricsRun;
let job: string;
beforeEach(async () => {
  folder = temporaryFolder();
  const suite = join(folder, "suite.yaml");
  await writeFile(suite, suiteText);
  const tasks = { choices: choiceTask(), replies: replyTask() };
  const evaluator = Evaluator.fromTrainer(fakeTrainer(), { name: "sft", tasks, suite, results: folder });
  ({ run, folder: job } = await evaluator.run());
});

const fileOf = async (part: string) =>
  join(
    job,
    (await readdir(job)).find((file) => file.startsWith(`samples_${part}_`))!,
  );

it("returns the value of each document for every metric; groups use the documents of their parts", async () => {
  const samples = await readSamples(folder, run);
  expect([...samples.keys()]).toEqual(Object.keys(run.metrics));
  for (const [key, parts] of samples) {
    const values = [...parts.values()];
    expect(values.every(([value, weight]) => [0, 1].includes(value) && weight === 1)).toBe(true);
    expect(values).toHaveLength(run.n[key]!);
    const mean = values.reduce((sum, [value]) => sum + value, 0) / values.length;
    expect(mean).toBeCloseTo(run.metrics[key]!, 12);
  }
  // Each of three subjects has four documents; two subjects belong to one category.
  expect(samples.get("choices/acc,none")!.size).toBe(12);
  expect(samples.get("choices_stem/acc,none")!.size).toBe(8);
});

it("leaves out metrics whose samples are missing, damaged, or disagree with the metric", async () => {
  const law = await fileOf("choices_law");
  const text = await readFile(law, "utf8");
  const without = async () => {
    const left = await readSamples(folder, run);
    return Object.keys(run.metrics).filter((key) => !left.has(key));
  };
  const ofLaw = ["choices/acc,none", "choices_humanities/acc,none", "choices_law/acc,none"];
  await writeFile(law, text.slice(0, -20));
  expect(await without()).toEqual(expect.arrayContaining(ofLaw));
  await rm(law);
  const gone = await without();
  expect(gone).toEqual(expect.arrayContaining(ofLaw));
  expect(gone.every((key) => /^choices(_humanities|_law)?\//.test(key))).toBe(true);
  await writeFile(
    law,
    text.replace(/"acc":(\d)/, (_, value) => `"acc":${1 - Number(value)}`),
  );
  expect(await without()).toEqual(ofLaw);
  await writeFile(law, text);
  expect(await without()).toEqual([]);
});

it("returns nothing for a run without samples", async () => {
  expect((await readSamples(folder, { ...run, timestamp: "2020" })).size).toBe(0);
});
