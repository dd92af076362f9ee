import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readConfigFile } from "@periodic-eval/core/config";
import { throwAll } from "./every-error.ts";
import { parseTrainConfig } from "./train-config.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "train-config-"));
  await mkdir(join(folder, "models/tiny"), { recursive: true });
});
afterAll(() => rm(folder, { recursive: true }));

async function parsed(text: string, overrides: readonly string[] = []) {
  const path = join(folder, "train.yaml");
  await writeFile(path, text);
  const { config, wrong } = parseTrainConfig(await readConfigFile(path, overrides));
  throwAll(wrong);
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

describe("a training from a file", () => {
  it("has its defaults, and paths relative to the file", async () => {
    expect(await parsed(whole)).toEqual({
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

  it("takes rows to validate on for every method", async () => {
    const { phases } = await parsed(whole, ["phases.1.method=dpo"]);
    expect(phases[1]).toMatchObject({ method: "dpo", validation: join(folder, "held.jsonl") });
  });

  it("takes loggers by their names, with paths relative to the file", async () => {
    const loggers =
      "loggers: { jsonl: {}, tensorboard: { logDir: tb }, wandb: { project: em, runDir: sent } }\n";
    expect((await parsed(loggers + whole)).loggers).toEqual({
      jsonl: {},
      tensorboard: { logDir: join(folder, "tb") },
      wandb: { project: "em", runDir: join(folder, "sent") },
    });
  });

  it("takes paths of overrides relative to the working folder, as the shell completes them", async () => {
    const given = await parsed(whole, [
      "run_dir=runs/2",
      "model=./models/tiny",
      "phases.0.dataset=other.jsonl",
      "periodic_eval.questions=asked.jsonl",
      "periodic_eval.phases.em.margin=probed.jsonl",
      "loggers.csv={ path: log.csv }",
    ]);
    expect(given).toMatchObject({
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

  it("takes no misspelt baseline for a path", async () => {
    const { periodic_eval: block } = await parsed(whole, ["periodic_eval.baseline=adapter_of"]);
    expect(block["baseline"]).toBe("adapter_of");
  });

  it("takes a model of the hub by its name, where no folder is called so", async () => {
    for (const name of ["owner/name", "owner/name@main"])
      expect((await parsed(whole, [`model=${name}`])).model).toBe(name);
    for (const path of ["./owner/name", "nowhere", "a/b/c"])
      expect((await parsed(whole.replace("models/tiny", path))).model).toBe(join(folder, path));
  });

  it("tells a misspelt key, not also what is missing for it", async () => {
    const told = parsed(whole.replace("dataset: coupling", "datset: coupling"));
    await expect(told).rejects.toThrow(/^[^\n]* phases\.0: got the unknown option "datset"[^\n]*$/);
  });

  it.each<[what: string, message: string, text: string, overrides?: readonly string[]]>([
    ["an unknown key", 'run-dir=x (run-dir): got the unknown option "run-dir"', whole, ["run-dir=x"]],
    [
      "one of a phase",
      'phases.0.datset=x (phases.0.datset): got the unknown option "datset"',
      whole,
      ["phases.0.datset=x"],
    ],
    ["one of a configuration", 'Did you mean "batchSize"?', whole, ["phases.1.config.batchSise=4"]],
    [
      "a wrong value of what phases share",
      'train.yaml:3 config.maxSteps, SFT config.maxSteps: got "many"',
      whole.replace("maxSteps: 10", "maxSteps: many"),
    ],
    [
      "one of a phase",
      "phases.1.config.batchSize=0 (phases.1.config.batchSize), SFT config.batchSize: got 0",
      whole,
      ["phases.1.config.batchSize=0"],
    ],
    [
      "an option beside one that it does not go with",
      "config.decaySteps=5 (config.decaySteps), SFT config.decaySteps: got 5 with schedule",
      whole,
      ["config.schedule=linear", "config.decaySteps=5"],
    ],
    [
      "what phases share beside what a phase has",
      "config.decaySteps=5 (config.decaySteps), SFT config.decaySteps: got 5 with schedule",
      whole,
      ["phases.0.config.schedule=linear", "config.schedule=wsd", "config.decaySteps=5"],
    ],
    [
      "an option that another asks for",
      "config.packing=true (config.packing), SFT config.maxLength: got no `maxLength`, which `packing` requires",
      whole,
      ["config.packing=true"],
    ],
    [
      "a phase without data",
      "train.yaml:11 phases.0.dataset: got nothing, expected a text",
      whole.replace("    dataset: coupling.jsonl\n", ""),
    ],
    [
      "a key of another method",
      "phases.1.reference=base (phases.1.reference): got it in a phase of another method, expected a phase with method: dpo",
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
      "a name given twice",
      'train.yaml:13 phases.1.phase: got "coupling", as another phase is named',
      whole.replace("- phase: em", "- phase: coupling"),
    ],
    ["no phases", "phases=[] (phases): got [], expected a phase or more", whole, ["phases=[]"]],
    [
      "a wrong method",
      'phases.0.method=ppo (phases.0.method): got "ppo", expected',
      whole,
      ["phases.0.method=ppo"],
    ],
    [
      "a new adapter and an old one",
      "adapter=a (adapter): got adapter beside lora",
      whole,
      ["lora.rank=4", "adapter=a"],
    ],
    [
      "a second seed",
      "config.seed=7 (config.seed): got 7, a second seed, expected none: the seed of a run stands at the top",
      whole,
      ["config.seed=7"],
    ],
    [
      "a seed of a phase",
      "train.yaml:16 phases.1.config.seed: got 7",
      whole.replace("config: { maxSteps: 20 }", "config: { seed: 7 }"),
    ],
    ["a list", "expected an object of options", "- 1\n"],
  ])("refuses %s, with its place", async (_what, message, text, overrides) => {
    await expect(parsed(text, overrides)).rejects.toThrow(message);
  });
});
