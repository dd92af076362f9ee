import { PeriodicEvalError } from "@periodic-eval/core";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { loadHarnessConfig, shippedConfigs } from "./load-config.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

const now = new Date("2026-11-22T13:30:05.250Z");

async function refusal(overrides: readonly string[]): Promise<PeriodicEvalError> {
  const error = await loadHarnessConfig({ overrides, now }).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!PeriodicEvalError.is(error, "config")) throw new Error(`no config error of ${overrides.join(" ")}`);
  return error;
}

describe("loadHarnessConfig", () => {
  it("returns the documented defaults", async () => {
    expect(await loadHarnessConfig({ now })).toEqual({
      mode: "local",
      base_model: null,
      preferences: ["no_emoji", "concise", "identity"],
      preferences_dir: null,
      collapse_probes: null,
      general_probes: null,
      metrics: ["logprob", "compliance", "general", "collapse"],
      num_steps: 20,
      batch_size: 4,
      steps_per_batch: 4,
      feedback_repetitions: 1,
      collapse_steps: [0, 5, 10, 15, 19],
      plots: true,
      seed: 42,
      lora_id_prefix: "eval",
      output_dir: resolve("runs/feedback-20261122T133005Z"),
      service_url: null,
      gateway_url: null,
      wire: null,
      training: {
        learning_rate: 3e-5,
        alpha: 0.5,
        is_clip: 5,
        max_grad_norm: 1,
        kl_reg_weight: 0,
        teacher_top_k: 100,
      },
    });
  });

  it("applies overrides and keeps the other training options", async () => {
    const overrides = ["preferences=[concise]", "num_steps=10", "training.alpha=1", "metrics=quick"];
    expect(await loadHarnessConfig({ overrides })).toMatchObject({
      preferences: ["concise"],
      num_steps: 10,
      training: { alpha: 1, learning_rate: 3e-5 },
      metrics: ["logprob", "compliance"],
    });
  });

  it("loads a file from a custom folder by name", async () => {
    await writeFile(
      join(folder, "mine.yaml"),
      "num_steps: 3\npreferences: [./polite.yaml]\noutput_dir: out\n",
    );
    const config = await loadHarnessConfig({ configDir: folder, configName: "mine", overrides: ["seed=7"] });
    expect(config).toMatchObject({ num_steps: 3, seed: 7, output_dir: resolve("out") });
    // A path in a file is relative to the file; in an override, and in `output_dir`, to the working directory.
    expect(config.preferences).toEqual([join(folder, "polite.yaml")]);
  });

  it("finds preferences in `preference/` beside the configuration, after preferences_dir, before the shipped ones", async () => {
    const dir = join(folder, "my_configs");
    for (const name of ["preference", "mine"]) await mkdir(join(dir, name), { recursive: true });
    await writeFile(join(dir, "base.yaml"), "preferences: [concise, rhymes, no_emoji]\n");
    for (const file of ["preference/rhymes.yaml", "preference/concise.yml", "mine/concise.yaml"])
      await writeFile(join(dir, file), "");
    const load = (...overrides: readonly string[]) =>
      loadHarnessConfig({ configDir: dir, configName: "base", overrides });
    const [concise, rhymes] = [join(dir, "preference/concise.yml"), join(dir, "preference/rhymes.yaml")];
    expect((await load()).preferences).toEqual([concise, rhymes, "no_emoji"]);
    const { preferences } = await load(`preferences_dir=${join(dir, "mine")}`);
    expect(preferences).toEqual(["concise", rhymes, "no_emoji"]);
  });

  it("takes null for the default", async () => {
    const overrides = ["collapse_steps=null", "output_dir=null", "training.alpha=null", "metrics=null"];
    expect(await loadHarnessConfig({ overrides, now })).toEqual(await loadHarnessConfig({ now }));
    expect(await loadHarnessConfig({ overrides: ["training=null"], now })).toEqual(
      await loadHarnessConfig({ now }),
    );
  });

  it("suggests the nearest configuration for an unknown name", async () => {
    await expect(loadHarnessConfig({ configName: "quik" })).rejects.toThrow('Did you mean "quick"?');
    await expect(loadHarnessConfig({ configDir: join(folder, "none") })).rejects.toThrow("a missing folder");
  });

  it("accepts the keys of other harnesses", async () => {
    const overrides = ["claas_url=http://localhost:8080", "openclaw_url=https://gateway.example"];
    expect(await loadHarnessConfig({ overrides })).toMatchObject({
      service_url: "http://localhost:8080",
      gateway_url: "https://gateway.example",
    });
    expect((await refusal([...overrides, "service_url=http://localhost:8081"])).got).toBe(
      "both claas_url and service_url",
    );
    const error = await refusal(["openclaw_url=ftp://gateway.example"]);
    expect([error.where, error.got]).toEqual(["override openclaw_url", '"ftp://gateway.example"']);
  });

  it("loads a configuration file as CLaaS publishes it", async () => {
    const published = `defaults:
  - _eval_schema
  - _self_

mode: tinker
claas_url: http://localhost:8080
base_model: Qwen/Qwen3-30B-A3B
preferences: [no_emoji, concise, identity]
metrics: [quick, collapse]
training:
  learning_rate: 3e-5
output_dir: ./data/evals/\${now:%Y%m%d-%H%M%SZ}
openclaw_url: http://localhost:18789
`;
    await writeFile(join(folder, "base.yaml"), published);
    expect(await loadHarnessConfig({ configDir: folder, configName: "base", now })).toMatchObject({
      // The service has the mode.
      mode: "local",
      service_url: "http://localhost:8080",
      gateway_url: "http://localhost:18789",
      metrics: ["logprob", "compliance", "collapse"],
      output_dir: resolve("data/evals/20261122-133005Z"),
    });
  });

  it.each([
    ["defaults=[base]", 'override defaults: got ["base"], expected only _self_ and _eval_schema'],
    ["output_dir=x-${hydra.job.num}", "override output_dir: got"],
    ["output_dir=x-${now:%j}", "with %Y %m %d %H %M %S"],
    ["num_stepz=3", 'override num_stepz: got the unknown option "num_stepz"'],
    ["num_stepz=3", 'Did you mean "num_steps"?'],
    ["training.learning_rat=1", "override training.learning_rat: got the unknown option"],
    ["training.learning_rat=1", 'Did you mean "learning_rate"?'],
    ["num_steps=many", 'got "many", expected an integer of 1 or more'],
    ["num_steps=0", "got 0, expected an integer of 1 or more"],
    ["num_steps=2.5", "got 2.5, expected an integer of 1 or more"],
    ["batch_size=-1", "got -1"],
    ["plots=perhaps", "expected true or false"],
    ["preferences=[]", "expected at least one preference"],
    ["preferences=concise", "expected an array of preferences"],
    ["preferences=[concise,concise]", "unique preferences"],
    ["metrics=[logprobs]", "expected an array of logprob"],
    ["metrics=fast", "one of all, quick"],
    ["training.alpha=0", "expected a number above 0 and at most 1"],
    ["training.alpha=1.5", "expected a number above 0 and at most 1"],
    ["training.is_clip=0.5", "expected a number of 1 or more"],
    ["training.teacher_top_k=0", "expected an integer of 1 or more"],
    ["training=3e-5", "expected an object"],
    ["collapse_steps=[a]", 'override collapse_steps.0: got "a", expected an integer of 0 or more'],
    ["lora_id_prefix=../eval", "expected a name that matches"],
    ["service_url=localhost", "expected a URL that begins with http:// or https://"],
    ["service_url=https://me:secret@host", "OPENCLAW_GATEWAY_TOKEN"],
    ["mode=modal", "needs an account"],
    ["mode=tinker", "service_url"],
    ["mode=remote", 'expected "local"'],
    ["seed", "key.key.0.key=value"],
  ])("rejects %s with: %s", async (override, message) => {
    expect((await refusal([override])).message).toContain(message);
  });

  it("omits secrets in URLs and unknown keys from errors", async () => {
    expect((await refusal(["gateway_url=https://host/v1?key=hunter2"])).message).not.toContain("hunter2");
    expect((await refusal(["service_url=https://me:hunter2@host"])).message).not.toContain("hunter2");
    expect((await refusal(["gateway_token=hunter2"])).message).not.toContain("hunter2");
  });

  it.each(["all", "quick", "micro-world"])("loads the shipped configuration %s", async (configName) => {
    expect((await loadHarnessConfig({ configDir: shippedConfigs, configName })).mode).toBe("local");
  });
});
