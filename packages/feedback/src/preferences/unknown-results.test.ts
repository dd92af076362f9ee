import { measure } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { useBackend } from "@periodic-eval/models";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { loadHarnessConfig } from "../config/load-config.ts";
import { fakeEngine } from "../engine/fake-engine.test-data.ts";
import { httpEngine } from "../engine/http-engine.ts";
import { localEngine } from "../engine/local-engine.ts";
import { microWorldParts } from "../engine/micro-world.test-data.ts";
import type { FeedbackEngine } from "../engine/types.ts";
import type { BaselineFile, StepLine } from "../harness/files.ts";
import { runHarness } from "../harness/run-harness.ts";
import { feedbackEvaluations } from "../metrics/configured.ts";
import { claasDouble } from "../testing/index.ts";
import { writeHydraFiles } from "./hydra-files.test-data.ts";
import { readPreference } from "./preference.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let folder = "";
let names: readonly string[] = [];
beforeEach(async () => {
  folder = temporaryFolder();
  names = await writeHydraFiles(folder);
});

const reasons = {
  held_out_compliance: expect.stringContaining("no held-out prompts") as string,
  logprob_margin_p: expect.stringContaining("needs 12 or more pairs") as string,
};

async function run(engine: FeedbackEngine, overrides: readonly string[] = []) {
  const warnings: string[] = [];
  const config = await loadHarnessConfig({
    overrides: [
      `output_dir=${join(folder, "run")}`,
      `preferences_dir=${folder}`,
      "metrics=quick",
      "num_steps=2",
      "batch_size=1",
      "steps_per_batch=1",
      ...overrides,
    ],
  });
  const { preferences } = await runHarness(config, { engine, onWarning: (text) => warnings.push(text) });
  const file = (name: string, of: string) => readFile(join(folder, "run", name, of), "utf8");
  const baselineOf = async (name: string) => JSON.parse(await file(name, "baseline.json")) as BaselineFile;
  const linesOf = async (name: string) =>
    (await file(name, "steps.jsonl"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as StepLine);
  return { preferences, warnings, baselineOf, linesOf };
}

/** Requires what a run of a published file can and cannot show. */
async function expectUnknown({
  preferences,
  warnings,
  baselineOf,
  linesOf,
}: Awaited<ReturnType<typeof run>>) {
  expect(Object.keys(preferences)).toEqual(names);
  expect(warnings).toHaveLength(2 * names.length);
  for (const name of names) {
    const summary = preferences[name]!;
    expect(summary).toMatchObject({
      status: "finished",
      verdict: "not decided",
      logprob_margin_delta: expect.any(Number) as number,
      logprob_margin_p: null,
      baseline_compliance: null,
      final_compliance: null,
      baseline_seen_compliance: expect.any(Number) as number,
      final_seen_compliance: expect.any(Number) as number,
      unknown: reasons,
    });
    expect(await baselineOf(name)).toMatchObject({ unknown: reasons, margin_rows: [{ id: `${name}/0` }] });
    const lines = await linesOf(name);
    expect(lines).toHaveLength(2);
    for (const { eval: seen, unknown, prompt_used: prompt } of lines) {
      const { probe_prompts: probes } = await readPreference(name, folder);
      expect(probes).toContain(prompt);
      expect(unknown).toMatchObject(reasons);
      expect(seen.logprob_margin).toMatchObject({ p: null, n: 1, reason: null });
      // Two answers to each of two prompts.
      expect(seen.preference_compliance).toMatchObject({ held_out: null, held_out_n: 0, seen_n: 4 });
    }
  }
}

describe("files as CLaaS publishes them", () => {
  it("train the embedded model on their probe prompts, and leave unknown what they cannot show", async () => {
    await useBackend({ backend: "wasm" });
    await expectUnknown(await run(localEngine(microWorldParts)));
  });

  it("train a service that reports no updates", async () => {
    const service = await claasDouble({ answer: (prompt, steps) => `${prompt} Answer ${steps}.` });
    await expectUnknown(await run(httpEngine({ serviceUrl: service.url }), [`claas_url=${service.url}`]));
    await service.close();
  });

  it("are measured on their probe prompts in any other training", async () => {
    const compliance = { feedback: "compliance", preference: "identity", preferences_dir: folder };
    const evaluation = await feedbackEvaluations["feedback"]!(compliance, "here");
    const { snapshot } = await measure(evaluation, fakeModel({ reply: () => "I am Kuro." }));
    expect(snapshot.metrics["compliance"]).toMatchObject({ value: 1, n: 4 });
    expect(snapshot.metrics["seen_compliance"]).toMatchObject({ value: null, n: 0 });
  });
});

describe("runHarness", () => {
  const pairs = Array.from({ length: 12 }, (_, at) => ({
    prompt: `pair ${at}`,
    chosen: `yes ${at}`,
    rejected: `no, ${at}`,
  }));
  const whole = {
    name: "short",
    feedback_string: "Shorter, please.",
    verifier: "no_emoji",
    logprob_pairs: pairs,
    train_prompts: ["a", "b"],
    probe_prompts: ["c", "d"],
  };
  const outcomeOf = async (change: object, overrides: readonly string[] = []) => {
    await writeFile(join(folder, "short.yaml"), stringify({ ...whole, ...change }));
    const { preferences, warnings } = await run(fakeEngine(), ["preferences=[short]", ...overrides]);
    return { ...preferences["short"]!, warnings };
  };
  const untrained = { train_prompts: undefined };
  /** The reasons of every run with `metrics=quick`. */
  const notRequested = {
    capability_ratio: "general is not among the metrics",
    collapse_alerts: "collapse is not among the metrics",
  };

  it.each([
    ["11 pairs", { logprob_pairs: pairs.slice(1) }, ["logprob_margin_p"], "has 11, of which 11 are"],
    [
      "a pair with a training prompt",
      { ...untrained, probe_prompts: ["c", " PAIR 3"] },
      ["held_out_compliance", "logprob_margin_p"],
      "has 12, of which 11 are",
    ],
  ])("tests no margin and decides nothing with %s", async (_, change, unknown, reason) => {
    const outcome = await outcomeOf(change);
    // Each update raises the log p of chosen answers by 1 nat.
    expect(outcome).toMatchObject({
      logprob_margin_delta: 2,
      logprob_margin_p: null,
      verdict: "not decided",
    });
    expect(Object.keys(outcome.unknown!)).toEqual([...unknown, ...Object.keys(notRequested)]);
    expect(outcome.unknown!["logprob_margin_p"]).toContain(reason);
    expect(outcome.warnings).toHaveLength(unknown.length);
  });

  it("tests margins of held-out pairs also without held-out prompts", async () => {
    const outcome = await outcomeOf(untrained);
    expect(outcome).toMatchObject({ logprob_margin_p: 2 / 4096, final_compliance: null, verdict: "learned" });
    expect(outcome.warnings).toEqual([expect.stringContaining("held out compliance will not be known")]);
  });

  it("warns only about configured metrics, and about nothing if the preference is complete", async () => {
    expect((await outcomeOf(untrained, ["metrics=[logprob]"])).warnings).toEqual([]);
    await rm(join(folder, "run"), { recursive: true });
    const complete = await outcomeOf({});
    expect([complete.warnings, complete.unknown]).toEqual([[], notRequested]);
  });
});
