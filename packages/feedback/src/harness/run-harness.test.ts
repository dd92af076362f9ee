import { existsSync } from "node:fs";
import { appendFile, cp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { fakeGuard } from "@periodic-eval/testing";
import { loadHarnessConfig } from "../config/load-config.ts";
import type { HarnessConfig } from "../config/schema.ts";
import { fakeEngine, type Moment } from "../engine/fake-engine.test-data.ts";
import type { BaselineFile, MetadataFile, StepLine, SummaryFile } from "./files.ts";
import { runHarness, type HarnessPorts } from "./run-harness.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

let folder = "";
beforeEach(() => void (folder = temporaryFolder()));

const preference = {
  name: "short",
  feedback_string: "Shorter, please.",
  hindsight: "{prompt} {feedback}",
  verifier: "no_emoji",
  logprob_pairs: Array.from({ length: 12 }, (_, at) => ({
    prompt: `pair ${at}`,
    chosen: `yes ${at}`,
    rejected: `no, ${at}`,
  })),
  train_prompts: ["a", "b", "c"],
  probe_prompts: ["d", "e"],
};

async function configOf(output: string, overrides: readonly string[] = []): Promise<HarnessConfig> {
  const path = join(folder, "short.yaml");
  if (!existsSync(path)) await writeFile(path, stringify(preference));
  const defaults = [
    `preferences=[${JSON.stringify(path)}]`,
    `output_dir=${join(folder, output)}`,
    "metrics=[logprob,compliance,collapse]",
  ];
  return loadHarnessConfig({
    overrides: [...defaults, "num_steps=4", "batch_size=2", "collapse_steps=[0,3]", ...overrides],
  });
}

const file = (output: string, name: string) => join(folder, output, name);
const read = async <T>(output: string, name: string) =>
  JSON.parse(await readFile(file(output, name), "utf8")) as T;
const linesOf = async (output: string) =>
  (await readFile(file(output, "short/steps.jsonl"), "utf8"))
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as StepLine);
const timeless = ({ timestamp: _t, timing_s: _s, ...line }: StepLine) => line;

let whole = "";
const wholeFolder = temporaryFolder(afterAll);

/** Returns the folder of an uninterrupted run, which several tests compare with. */
async function wholeRun(): Promise<string> {
  if (whole !== "") return whole;
  await runHarness(await configOf("whole"), { engine: fakeEngine() });
  await cp(file("whole", ""), wholeFolder, { recursive: true });
  whole = wholeFolder;
  return whole;
}

describe("runHarness", () => {
  it("takes a partial configuration, with the documented defaults", async () => {
    await configOf("unused");
    const preferences = [join(folder, "short.yaml")];
    const output_dir = relative(process.cwd(), join(folder, "partial"));
    const given = { preferences, num_steps: 1, output_dir, collapse_steps: null };
    const { preferences: summaries } = await runHarness(given, { engine: fakeEngine() });
    expect(summaries["short"]).toMatchObject({ status: "finished", steps: 1 });
    const { config } = await read<MetadataFile>("partial", "short/metadata.json");
    const defaults = await loadHarnessConfig();
    expect(config).toEqual({ ...defaults, preferences, num_steps: 1, output_dir: join(folder, "partial") });
    // The whole configuration is a partial one, too.
    const again = await runHarness(config, { engine: fakeEngine() });
    expect(again.preferences).toEqual(summaries);
    await expect(runHarness({ num_stepz: 3 } as never, { engine: fakeEngine() })).rejects.toMatchObject({
      code: "config",
      where: "runHarness config.num_stepz",
      fix: 'Did you mean "num_steps"?',
    });
  });

  it("writes the files of a run with their documented fields", async () => {
    const reported: (number | null)[] = [];
    const summary = await runHarness(await configOf("run"), {
      engine: fakeEngine(),
      onStep: (_, line) => reported.push(line?.step ?? null),
    });
    expect(reported).toEqual([null, 0, 1, 2, 3]);
    const lines = await linesOf("run");
    expect(Object.keys(lines[0]!)).toEqual([
      "preference",
      "step",
      "timestamp",
      "feedback_given",
      "sdpo_metrics",
      "eval",
      "prompt_used",
      "response_text",
      "timing_s",
      "sub_step_count",
    ]);
    expect(Object.keys(lines[0]!.eval)).toEqual([
      "logprob_margin",
      "preference_compliance",
      "general",
      "collapse",
      "rollouts",
    ]);
    expect(lines.map(({ step }) => step)).toEqual([0, 1, 2, 3]);
    expect(lines.map(({ eval: { collapse } }) => collapse !== null)).toEqual([true, false, false, true]);
    expect(lines[0]).toMatchObject({
      feedback_given: "Shorter, please.",
      sub_step_count: 4,
      sdpo_metrics: { loss: 1, kl_reg: null, step_id: expect.stringMatching(/^pe128:[0-9a-f]{32}$/) },
      // Each update raises the log p of chosen answers by 1 nat.
      eval: { logprob_margin: { margin_delta: 1, n: 12 }, general: null },
    });
    expect(lines[0]!.eval.rollouts.filter(({ of }) => of === "training")).toHaveLength(2);
    expect((await read<SummaryFile>("run", "summary.json")).preferences).toEqual(summary.preferences);
    expect(summary.preferences["short"]).toMatchObject({
      status: "finished",
      steps: 4,
      logprob_margin_delta: 4,
      logprob_margin_p: 2 / 4096,
      final_compliance: 1,
      capability_ratio: null,
      // The fake engine's answers are all equal.
      collapse_alerts: ["self_rouge_l"],
      verdict: "collapsed",
    });
    expect(Object.keys(await read<object>("run", "short/metadata.json"))).toContain("preference_definition");
  });

  it("takes the baseline from the model before any update", async () => {
    await runHarness(await configOf("run"), { engine: fakeEngine() });
    const baseline = await read<BaselineFile>("run", "short/baseline.json");
    // −|yes 0| + |no, 0| = 0: the model has learned nothing yet.
    expect(baseline.eval.logprob_margin).toMatchObject({ margin: 0, margin_delta: null });
    expect(baseline.margin_rows).toHaveLength(12);
    expect(baseline.collapse_reference?.entropyNats).toBeGreaterThan(0);
    expect(baseline.eval.collapse).toMatchObject({ entropy_ratio: expect.closeTo(1, 12) });
  });

  it("stops if a measurement changed the model", async () => {
    const { open, ...rest } = fakeEngine();
    let generations = 0;
    // Each call of `generate` changes the model; compliance is the first metric that calls it.
    const guard = fakeGuard({ name: "weights", observe: () => `${generations}` });
    const engine: HarnessPorts["engine"] = {
      ...rest,
      async open(request) {
        const model = await open(request);
        const { generate } = model.evaluable;
        const evaluable = {
          ...model.evaluable,
          generate(...args: Parameters<NonNullable<typeof generate>>) {
            generations += 1;
            return generate!(...args);
          },
        };
        return { ...model, evaluable, guards: [guard] };
      },
    };
    await expect(runHarness(await configOf("run"), { engine })).rejects.toThrow(
      "the measurement of compliance: got changes to weights",
    );
  });

  it("reports the reason for a missing margin if the engine cannot score text", async () => {
    const { open, ...rest } = fakeEngine();
    const engine: HarnessPorts["engine"] = {
      ...rest,
      async open(request) {
        const model = await open(request);
        const { generate, identity, contextLength } = model.evaluable;
        return { ...model, evaluable: { generate: generate!, identity, contextLength } };
      },
    };
    const { preferences } = await runHarness(await configOf("run", ["num_steps=1"]), { engine });
    const [line] = await linesOf("run");
    expect(line!.eval.logprob_margin).toMatchObject({
      margin: null,
      n: 0,
      reason: "the engine scores no given text",
    });
    expect(line!.eval.collapse).toMatchObject({
      entropy_ratio: null,
      own_drift: null,
      alerts: ["self_rouge_l"],
    });
    expect(preferences["short"]).toMatchObject({ logprob_margin_delta: null, logprob_margin_p: null });
  });

  const moments: readonly (readonly [Moment | "line" | "baseline", number])[] = [
    ["opened", 0],
    ["baseline", 0],
    ["sampled", 0],
    ["updating", 0],
    ["updated", 1],
    ["line", 1],
    ["sampled", 2],
    ["updating", 3],
    ["updated", 3],
    ["updated", 4],
    ["line", 4],
  ];
  it.each(moments)(
    "resumes to the same result after an interruption at %s of step %i",
    async (moment, step) => {
      await cp(await wholeRun(), file("whole", ""), { recursive: true });
      const cut = new Error("cut off");
      const stop = new AbortController();
      const engine = fakeEngine((at, number) => {
        if (at === moment && number === step) throw cut;
      });
      const onStep = (_: string, line: StepLine | null) => {
        if (moment === "line" && line?.step === step - 1) stop.abort(cut);
        if (moment === "baseline" && line === null) stop.abort(cut);
      };
      const ports = { engine, onStep, signal: stop.signal };
      const run = runHarness(await configOf("cut"), ports);
      // After the last step, an abort comes too late to end the run.
      await (moment === "line" && step === 4 ? run : expect(run).rejects.toBe(cut));
      await runHarness(await configOf("cut"), { engine: fakeEngine() });
      expect((await linesOf("cut")).map(timeless)).toEqual((await linesOf("whole")).map(timeless));
      const [one, other] = await Promise.all(
        ["cut", "whole"].map((output) => read<SummaryFile>(output, "summary.json")),
      );
      const { lora_id: _, ...expected } = other!.preferences["short"]!;
      expect(one!.preferences["short"]).toMatchObject(expected);
    },
  );

  it("restores a torn last line from the checkpoint", async () => {
    await runHarness(await configOf("run"), { engine: fakeEngine() });
    const before = await linesOf("run");
    const path = file("run", "short/steps.jsonl");
    await truncate(path, (await readFile(path)).length - 20);
    await runHarness(await configOf("run"), { engine: fakeEngine() });
    expect((await linesOf("run")).map(timeless)).toEqual(before.map(timeless));
  });

  it("trains the steps of lines without a checkpoint again", async () => {
    await runHarness(await configOf("run", ["num_steps=2"]), { engine: fakeEngine() });
    await cp(file("run", "short/checkpoint.json"), file("run", "short/kept.json"));
    await runHarness(await configOf("run"), { engine: fakeEngine() });
    const before = await linesOf("run");
    await cp(file("run", "short/kept.json"), file("run", "short/checkpoint.json"));
    await truncate(
      file("run", "short/steps.jsonl"),
      Buffer.byteLength(
        before
          .slice(0, 3)
          .map((line) => `${JSON.stringify(line)}\n`)
          .join(""),
      ),
    );
    await runHarness(await configOf("run"), { engine: fakeEngine() });
    expect((await linesOf("run")).map(timeless)).toEqual(before.map(timeless));
  });

  it("opens no engine for a finished run, and resumes it if num_steps is raised", async () => {
    await runHarness(await configOf("run"), { engine: fakeEngine() });
    const engine = fakeEngine();
    const { preferences } = await runHarness(await configOf("run"), { engine });
    expect(engine.opened).toEqual([]);
    expect(preferences["short"]).toMatchObject({ status: "finished", steps: 4 });
    await runHarness(await configOf("run", ["num_steps=5"]), { engine });
    expect(await linesOf("run")).toHaveLength(5);
    expect(engine.opened).toHaveLength(1);
  });

  it("leaves no files after a model fails to open, so that another model can use the folder", async () => {
    const engine = { ...fakeEngine(), open: () => Promise.reject(new Error("no such model")) };
    await expect(runHarness(await configOf("run", ["base_model=a/b"]), { engine })).rejects.toThrow(
      "no such model",
    );
    await runHarness(await configOf("run", ["base_model=c/d", "num_steps=1"]), { engine: fakeEngine() });
    expect(await linesOf("run")).toHaveLength(1);
  });

  it.each(["plots", "summary.json", "Index.html"])(
    "rejects the reserved preference name %s",
    async (name) => {
      const path = join(folder, "taken.yaml");
      await writeFile(path, stringify({ ...preference, name }));
      const config = await configOf("run", [`preferences=[${JSON.stringify(path)}]`]);
      await expect(runHarness(config, { engine: fakeEngine() })).rejects.toThrow(
        `preferences: got a preference named "${name}", expected a name other than summary.json, plots`,
      );
      expect(existsSync(join(folder, "run"))).toBe(false);
    },
  );

  it("rejects the folder of another run", async () => {
    await runHarness(await configOf("run"), { engine: fakeEngine() });
    await expect(
      runHarness(await configOf("run", ["training.alpha=1"]), { engine: fakeEngine() }),
    ).rejects.toThrow("got different values of training");
    await writeFile(join(folder, "short.yaml"), stringify({ ...preference, feedback_string: "Longer." }));
    await expect(runHarness(await configOf("run"), { engine: fakeEngine() })).rejects.toThrow(
      "preference_definition",
    );
  });

  it("rejects a trained model as the baseline", async () => {
    await runHarness(await configOf("run", ["num_steps=1"]), { engine: fakeEngine() });
    await rm(file("run", "short/baseline.json"));
    await expect(runHarness(await configOf("run"), { engine: fakeEngine() })).rejects.toThrow(
      "before any update",
    );
  });

  it("names the damaged line in the error", async () => {
    await runHarness(await configOf("run"), { engine: fakeEngine() });
    await appendFile(file("run", "short/steps.jsonl"), "{\n");
    await expect(runHarness(await configOf("run"), { engine: fakeEngine() })).rejects.toThrow(
      "steps.jsonl:5",
    );
  });

  it.each([
    ["baseline.json", '"eval"', '"evam"', "baseline.json: eval: got undefined, expected an object"],
    ["steps.jsonl", '"step_id"', '"stop_id"', "steps.jsonl:1: sdpo_metrics.step_id: got undefined"],
    ["steps.jsonl", /^.*/, "null", "steps.jsonl:1: got null, expected an object"],
    ["metadata.json", '"config"', '"confih"', "metadata.json: config: got undefined"],
  ])("names the field of %s that is damaged, before it trains: %s", async (name, from, to, message) => {
    await runHarness(await configOf("run", ["num_steps=1"]), { engine: fakeEngine() });
    const path = file("run", join("short", name));
    await writeFile(path, (await readFile(path, "utf8")).replace(from, to));
    const engine = fakeEngine();
    await expect(runHarness(await configOf("run"), { engine })).rejects.toMatchObject({
      code: "store",
      message: expect.stringContaining(message),
    });
    expect(engine.opened).toEqual([]);
  });

  it("removes temporary files that a killed process left in a preference's folder", async () => {
    await runHarness(await configOf("run", ["num_steps=1"]), { engine: fakeEngine() });
    const names = [".updates.json.4194305.1.tmp", ".steps.jsonl.4194305.2.tmp"];
    for (const name of names) await writeFile(file("run", join("short", name)), "{");
    await runHarness(await configOf("run"), { engine: fakeEngine() });
    expect(names.filter((name) => existsSync(file("run", join("short", name))))).toEqual([]);
  });

  it("rejects a folder in which another run is active", async () => {
    const config = await configOf("run");
    const { open, ...rest } = fakeEngine();
    const seconds: Promise<unknown>[] = [];
    const engine = {
      ...rest,
      async open(request: Parameters<typeof open>[0]) {
        seconds.push(runHarness(config, { engine: fakeEngine() }).catch((error: unknown) => error));
        await Promise.all(seconds);
        return open(request);
      },
    };
    expect((await runHarness(config, { engine })).preferences["short"]).toMatchObject({ steps: 4 });
    expect((await Promise.all(seconds)).map(String)).toEqual([expect.stringContaining(".feedback.lock")]);
  });

  it.each([
    [{ verifier: "no_emojis" }, 'Did you mean "no_emoji"?'],
    [{ verifier: { module: "./none.mjs", export: "f" } }, "none.mjs"],
    [{ probe_prompts: ["a"] }, "one of train_prompts"],
  ])("rejects a wrong preference before training: %j", async (change, message) => {
    const config = await configOf("run");
    await writeFile(join(folder, "short.yaml"), stringify({ ...preference, ...change }));
    const engine = fakeEngine();
    await expect(runHarness(config, { engine })).rejects.toThrow(message);
    expect(engine.opened).toEqual([]);
    expect(existsSync(file("run", "summary.json"))).toBe(false);
  });
});
