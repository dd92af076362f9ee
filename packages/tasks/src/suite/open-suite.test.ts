import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { EvaluationRegistry } from "@periodic-eval/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { chooseEvaluations } from "./open-suite.ts";
import { choiceTask } from "./fake-tasks.test-data.ts";
import { parseSuite } from "./suite-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  await mkdir(join(folder, "model"));
  await mkdir(join(folder, "owner", "here"), { recursive: true });
});

/** Returns the options with which the registry opens an entry of a suite in `folder`. */
async function opened(entry: object, root = { given: null as string | null, folder }) {
  let options: Readonly<Record<string, unknown>> = {};
  const open = (given: typeof options) => ((options = given), choiceTask().open({ data: "" }));
  const registry: EvaluationRegistry = { feedback: open, win_rate: open, kl_to_reference: open };
  const suite = parseSuite(
    {
      schema_version: 1,
      name: "s",
      tasks: { mmlu: {}, arc_challenge: { data: "questions.jsonl", fewshot_pool: "pool.jsonl" } },
      evaluations: [entry],
    },
    "suite",
  );
  await chooseEvaluations(suite, registry, root);
  return options;
}

it("resolves every path key of an entry against the folder of the suite's file", async () => {
  const own = { feedback: "general", preference: "./p.yaml", preferences_dir: "all", probes: "probes.yaml" };
  expect(await opened(own)).toEqual({
    feedback: "general",
    preference: join(folder, "p.yaml"),
    preferences_dir: join(folder, "all"),
    probes: join(folder, "probes.yaml"),
  });
  const judged = { win_rate: "prompts.jsonl", reference: "a/answers.jsonl", judge: "folder:judge" };
  expect(await opened(judged)).toEqual({
    win_rate: join(folder, "prompts.jsonl"),
    reference: join(folder, "a", "answers.jsonl"),
    judge: `folder:${join(folder, "judge")}`,
  });
  const nested = { kl_to_reference: { task: "own" }, reference: { model: "model", adapter: "owner/here" } };
  expect(await opened(nested)).toEqual({
    kl_to_reference: { task: "own", data: join(folder, "own") },
    reference: { model: join(folder, "model"), adapter: join(folder, "owner", "here") },
  });
});

it("takes the data that the suite gives an entry's task", async () => {
  const of = async (task: object) =>
    (await opened({ kl_to_reference: task, reference: "owner/m" }))["kl_to_reference"];
  expect(await of({ task: "arc_challenge", limit: 5 })).toEqual({
    task: "arc_challenge",
    limit: 5,
    data: join(folder, "questions.jsonl"),
    fewshot_pool: join(folder, "pool.jsonl"),
  });
  const own = { task: "arc_challenge", data: "hf:o/d" };
  expect(await of(own)).toEqual(own);
});

it("keeps names of preferences, datasets, models on the hub and judges", async () => {
  for (const entry of [
    { feedback: "logprob", preference: "concise" },
    { win_rate: "hf:o/d", reference: "owner/model", judge: "openai:m" },
  ])
    expect(await opened(entry)).toEqual(entry);
});

it("does not look for a missing file in the working directory", async () => {
  const name = "package.json";
  expect(existsSync(name)).toBe(true);
  expect(await opened({ win_rate: name })).toEqual({ win_rate: join(folder, name) });
  const data = join(folder, "data");
  expect(await opened({ win_rate: name }, { given: data, folder })).toEqual({ win_rate: join(data, name) });
});
