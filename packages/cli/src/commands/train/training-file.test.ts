import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PeriodicEvalError } from "@periodic-eval/core";
import { readConfigFile } from "@periodic-eval/data/config";
import { throwAll } from "../../config/config-file.ts";
import { parseTrainingFile } from "./training-file.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  await mkdir(join(folder, "models/tiny"), { recursive: true });
});

async function parse(yaml: string, overrides: readonly string[] = []) {
  const path = join(folder, "train.yaml");
  await writeFile(path, yaml);
  const { config, errors } = parseTrainingFile(await readConfigFile(path, overrides));
  throwAll(errors);
  return config;
}

const whole = `model: models/tiny
run_dir: runs/1
config: { learningRate: 0.001, maxSteps: 10 }
periodic_eval:
  questions: questions.jsonl
  subsample_n: 10
  phases:
    coupling: { baseline: run_start }
    em: { margin: probes.jsonl, baseline: ../runs/0 }
phases:
  - phase: coupling
    dataset: coupling.jsonl
  - phase: em
    dataset: ../em.jsonl
    validation: held.jsonl
    config: { maxSteps: 20 }
`;

/** Returns the errors of a file. */
async function errorsIn(yaml: string): Promise<readonly PeriodicEvalError[]> {
  const error: unknown = await parse(yaml).catch((thrown: unknown) => thrown);
  return (error instanceof AggregateError ? error.errors : [error]) as readonly PeriodicEvalError[];
}

const start = "model: models/tiny\nrun_dir: runs/1\nphases:\n  - { phase: em, dataset: d.jsonl }\n";

it.each([
  [
    "periodic_eval:\nleakage: true\nleakage_source: x\n",
    "5 periodic_eval: got null",
    "Indent its options by two spaces",
  ],
  ["config:\nmaxSteps: 3\n", "5 config: got null", "Indent its options by two spaces below it, or write {}."],
  [
    "config:\n  - maxSteps: 3\n",
    "6 config: got",
    "Write an object instead of a list: without the dashes in YAML",
  ],
  ["loggers: [csv, jsonl]\n", "5 loggers: got", "Write an object instead of a list: { csv: {}, jsonl: {} }."],
  ["periodic_eval:\n  leakage:true\n", "6 periodic_eval: got", "Write a space after the colon."],
])("names a mistake in the form once, with its remedy: %j", async (yaml, place, fix) => {
  const errors = await errorsIn(start + yaml);
  expect(errors).toHaveLength(1);
  expect(errors[0]!.message).toContain(`train.yaml:${place}`);
  expect(errors[0]!.message).toContain(fix);
});

it("names a list where a phase is written as an object", async () => {
  const [error] = await errorsIn("model: m\nrun_dir: r\nphases:\n  phase: em\n  dataset: d.jsonl\n");
  expect(error!.fix).toBe("Write a list: in YAML with a dash before each entry, in code in [ ].");
});

it.each([
  [
    "phases: [em.jsonl]\n",
    'phases.0: got "em.jsonl", expected a map such as { phase: em, dataset: em.jsonl }. Write its keys and values instead of a string.',
  ],
  [
    "phases:\n  -\n",
    "phases.0: got null, expected a map such as { phase: em, dataset: em.jsonl }. Indent its options by two spaces below it, or write {}.",
  ],
])("names what a phase looks like: %j", async (yaml, message) => {
  const errors = await errorsIn(`model: m\nrun_dir: r\n${yaml}`);
  expect(errors.map((error) => error.message)).toEqual([expect.stringContaining(message)]);
});

describe("parseTrainingFile", () => {
  it("fills in defaults and resolves paths relative to the file", async () => {
    expect(await parse(whole)).toEqual({
      model: join(folder, "models/tiny"),
      run_dir: join(folder, "runs/1"),
      seed: 42,
      loggers: {},
      resume: "auto",
      config: { learningRate: 0.001, maxSteps: 10 },
      periodic_eval: {
        questions: join(folder, "questions.jsonl"),
        subsample_n: 10,
        phases: {
          coupling: { baseline: "run_start" },
          em: { margin: join(folder, "probes.jsonl"), baseline: join(folder, "../runs/0") },
        },
      },
      phases: [
        { phase: "coupling", method: "sft", dataset: join(folder, "coupling.jsonl"), config: {} },
        {
          phase: "em",
          method: "sft",
          dataset: join(folder, "../em.jsonl"),
          validation: join(folder, "held.jsonl"),
          config: { maxSteps: 20 },
        },
      ],
    });
  });

  it("accepts validation rows for every method", async () => {
    const { phases } = await parse(whole, ["phases.1.method=dpo"]);
    expect(phases[1]).toMatchObject({ method: "dpo", validation: join(folder, "held.jsonl") });
  });

  it("accepts loggers by name and resolves their paths relative to the file", async () => {
    const loggers =
      "loggers: { jsonl: {}, tensorboard: { logDir: tb }, wandb: { project: em, runDir: sent } }\n";
    expect((await parse(loggers + whole)).loggers).toEqual({
      jsonl: {},
      tensorboard: { logDir: join(folder, "tb") },
      wandb: { project: "em", runDir: join(folder, "sent") },
    });
  });

  it("resolves paths of overrides relative to the working directory, as shell completion does", async () => {
    const overridden = await parse(whole, [
      "run_dir=runs/2",
      "model=./models/tiny",
      "phases.0.dataset=other.jsonl",
      "periodic_eval.questions=asked.jsonl",
      "periodic_eval.phases.em.margin=probed.jsonl",
      "loggers.csv={ path: log.csv }",
    ]);
    expect(overridden).toMatchObject({
      run_dir: resolve("runs/2"),
      model: resolve("models/tiny"),
      loggers: { csv: { path: resolve("log.csv") } },
      periodic_eval: {
        questions: resolve("asked.jsonl"),
        phases: { em: { margin: resolve("probed.jsonl"), baseline: join(folder, "../runs/0") } },
      },
      phases: [
        { dataset: resolve("other.jsonl") },
        { dataset: join(folder, "../em.jsonl"), validation: join(folder, "held.jsonl") },
      ],
    });
  });

  it("does not treat a misspelt baseline as a path", async () => {
    const { periodic_eval: block } = await parse(whole, ["periodic_eval.baseline=adapter_of"]);
    expect(block!["baseline"]).toBe("adapter_of");
  });

  it("treats owner/name as a model on the Hub unless a folder of that name exists", async () => {
    for (const name of ["owner/name", "owner/name@main"])
      expect((await parse(whole, [`model=${name}`])).model).toBe(name);
    for (const path of ["./owner/name", "nowhere", "a/b/c"])
      expect((await parse(whole.replace("models/tiny", path))).model).toBe(join(folder, path));
  });

  it("reports a misspelt key without also reporting it as missing", async () => {
    const result = parse(whole.replace("dataset: coupling", "datset: coupling"));
    await expect(result).rejects.toThrow(/^[^\n]* phases\.0\.datset: got the unknown option "datset"[^\n]*$/);
  });

  it("reports a misspelt key whose value has another type once, and the other errors of the file", async () => {
    const result = parse(whole, ["confg=3", "phases.0.config.maxSteps=-1"]);
    const { errors } = (await result.catch((error: unknown) => error)) as AggregateError;
    expect((errors as PeriodicEvalError[]).map(({ path }) => path.join("."))).toEqual([
      "confg",
      "phases.0.config.maxSteps",
    ]);
  });

  it("reports every error of a file, also with misspelt and missing keys", async () => {
    const yaml = whole
      .replace("run_dir:", "rundir:")
      .replace("subsample_n: 10", "subsample_n: ten")
      .replace("maxSteps: 10 }", "maxSteps: ten }")
      .replace("maxSteps: 20 }", "maxStep: 20, zebra: 1 }")
      .replace("validation:", "vaildation:");
    const thrown = async (text: string) => {
      const error = await parse(text).catch((thrown: unknown) => thrown as AggregateError);
      return new Set(
        (error as AggregateError).errors.map((inner: PeriodicEvalError) => inner.path.join(".")),
      );
    };
    const ofBlock = "periodic_eval.subsample_n";
    const wrong = ["rundir", "phases.1.vaildation", "config.maxSteps", ofBlock];
    const ofConfig = ["phases.1.config.maxStep", "phases.1.config.zebra"];
    expect(await thrown(yaml)).toEqual(new Set([...wrong, ...ofConfig]));
    expect(await thrown(yaml.replace("\nphases:", "\nphase:"))).toEqual(
      new Set(["rundir", "phase", ofBlock]),
    );
    const incomplete = yaml.replace("model: models/tiny", "nothing: 1");
    expect(await thrown(incomplete)).toEqual(new Set([...wrong, ...ofConfig, "nothing", "model"]));
    const written = parse(yaml.replace("- phase: em", "- phase: coupling"));
    await expect(written).rejects.toThrow("train.yaml:13 phases.1.phase: got");
  });

  it("does not offer a second seed among the options of config", async () => {
    const error = await parse(whole, ["config.zebra=1"]).catch(
      (thrown: unknown) => thrown as PeriodicEvalError,
    );
    const names = (error as PeriodicEvalError).expected.split(", ");
    expect([names.includes("maxSteps"), names.includes("seed")]).toEqual([true, false]);
  });

  it.each([
    ["maxSteps=10", "config.maxSteps"],
    ["questions=q.jsonl", "periodic_eval.questions"],
    ["phases.0.maxSteps=10", "config.maxSteps"],
    ["config.learnRate=1", "learningRate"],
  ])("suggests for %s the key %s", async (override, key) => {
    const error = await parse(whole, [override]).catch((thrown: unknown) => thrown as PeriodicEvalError);
    const { code, fix, expected } = error as PeriodicEvalError;
    expect([code, fix]).toEqual(["config", `Did you mean "${key}"?`]);
    expect(expected).not.toContain(key);
  });

  it.each<[what: string, message: string, yaml: string, overrides?: readonly string[]]>([
    ["an unknown key", 'run-dir=x (run-dir): got the unknown option "run-dir"', whole, ["run-dir=x"]],
    [
      "an unknown key of a phase",
      'phases.0.datset=x (phases.0.datset): got the unknown option "datset"',
      whole,
      ["phases.0.datset=x"],
    ],
    ["an unknown training option", 'Did you mean "batchSize"?', whole, ["phases.1.config.batchSise=4"]],
    [
      "a wrong shared option",
      'train.yaml:3 config.maxSteps: got "many"',
      whole.replace("maxSteps: 10", "maxSteps: many"),
    ],
    [
      "a wrong option of a phase",
      "phases.1.config.batchSize=0 (phases.1.config.batchSize): got 0",
      whole,
      ["phases.1.config.batchSize=0"],
    ],
    [
      "an option that contradicts another one",
      "config.decaySteps=5 (config.decaySteps): got 5 with schedule",
      whole,
      ["config.schedule=linear", "config.decaySteps=5"],
    ],
    [
      "a shared option that contradicts an option of a phase",
      "config.decaySteps=5 (config.decaySteps): got 5 with schedule",
      whole,
      ["phases.0.config.schedule=linear", "config.schedule=wsd", "config.decaySteps=5"],
    ],
    [
      "an option without the option that it requires",
      "config.packing=true (config.packing): got true without `maxLength`",
      whole,
      ["config.packing=true"],
    ],
    [
      "a phase without a dataset",
      "train.yaml:11 phases.0.dataset: got nothing: it is missing, expected a non-empty string. Add dataset: Rows",
      whole.replace("    dataset: coupling.jsonl\n", ""),
    ],
    [
      "a key of another training method",
      "phases.1.reference=base (phases.1.reference): got a reference in a phase without method: dpo, expected a phase with method: dpo",
      whole,
      ["phases.1.reference=base"],
    ],
    [
      "an unknown logger",
      'loggers.json={} (loggers.json): got the unknown option "json"',
      whole,
      ["loggers.json={}"],
    ],
    [
      "a duplicate phase name",
      'train.yaml:13 phases.1.phase: got "coupling", the name of an earlier phase',
      whole.replace("- phase: em", "- phase: coupling"),
    ],
    ["no phases", "phases=[] (phases): got [], expected one phase or more", whole, ["phases=[]"]],
    [
      "a wrong method",
      'phases.0.method=ppo (phases.0.method): got "ppo", expected',
      whole,
      ["phases.0.method=ppo"],
    ],
    [
      "both a new and an existing adapter",
      "adapter=a (adapter): got adapter together with lora",
      whole,
      ["lora.rank=4", "adapter=a"],
    ],
    [
      "a second seed",
      "config.seed=7 (config.seed): got 7, a second seed, expected only the seed at the top",
      whole,
      ["config.seed=7"],
    ],
    [
      "a seed in a phase",
      "train.yaml:16 phases.1.config.seed: got 7",
      whole.replace("config: { maxSteps: 20 }", "config: { seed: 7 }"),
    ],
    ["a list", "expected a map with model, ", "- 1\n"],
  ])("rejects %s and names its place", async (_what, message, yaml, overrides) => {
    await expect(parse(yaml, overrides)).rejects.toThrow(message);
  });
});
