import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keptTerminal } from "./kept-terminal.test-data.ts";
import { microWorld } from "./micro-world.ts";
import { runCli } from "./program.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "prepare-training-"));
  // A model without weights: whoever reads them before the file is checked fails for that.
  await mkdir(join(folder, "model"));
  for (const name of await readdir(microWorld()))
    if (!name.endsWith(".safetensors")) copyFileSync(microWorld(name), join(folder, "model", name));
  await writeFile(
    join(folder, "train.yaml"),
    `model: model
backend: cpu
run_dir: run
lora: { rank: 2 }
config: { maxSteps: 3 }
periodic_eval:
  questions: model/questions.jsonl
loggers: { csv: {} }
phases:
  - { phase: coupling, dataset: model/coupling.jsonl }
  - { phase: em, dataset: model/em.jsonl, validation: model/control.jsonl }
`,
  );
});
afterAll(() => rm(folder, { recursive: true }));

/** What is said of the file with these overrides; nothing is written. */
async function refused(...overrides: readonly string[]): Promise<readonly string[]> {
  const terminal = keptTerminal();
  expect(await runCli(["train", join(folder, "train.yaml"), ...overrides], terminal)).toBe(1);
  expect(existsSync(join(folder, "run", "checkpoints"))).toBe(false);
  expect(terminal.said).toEqual([]);
  return terminal.complained.join("\n").split("\n");
}

describe("what a file has wrong is told before weights are loaded", () => {
  it.each<[overrides: readonly string[]]>([
    [[]],
    [["config.activationCheckpointing=true"]],
    [["config.packing=true", "config.maxLength=64"]],
    [["phases.0.config.maxLength=256"]],
  ])("where nothing is wrong, the weights are the next thing: %j", async (overrides) => {
    expect(await refused(...overrides)).toEqual([expect.stringMatching(/model\.safetensors: got ENOENT/)]);
  });

  it.each<[overrides: readonly string[], message: string]>([
    [["lora.rnk=3"], '(lora.rnk), withLora options.rnk: got the unknown option "rnk"'],
    [["lora.rank=0"], "withLora options.rank: got 0, expected a positive integer"],
    [["lora.rank=1025"], "withLora options.rank: got 1025, expected at most"],
    [["lora.targetModules=[q_prj]"], '(lora.targetModules), withLora options.targetModules[0]: got "q_prj"'],
    [
      ["lora.layersToTransform=[3]"],
      "withLora options.layersToTransform[0]: got 3, expected layers from 0 to 2",
    ],
    [
      ["config.maxLength=257"],
      "config.maxLength=257 (config.maxLength), SFT config.maxLength: got 257, expected at most 256, the model's context",
    ],
    [["phases.1.config.maxLength=257"], "(phases.1.config.maxLength), SFT config.maxLength: got 257"],
    [
      ["config.validationShare=0.5"],
      "(config.validationShare), SFT config.validationShare: got 0.5 together with validation rows",
    ],
    [["phases.1.dataset=none.jsonl"], "(phases.1.dataset), "],
    [["phases.1.validation=none.jsonl"], "(phases.1.validation), "],
    [["periodic_eval.questions=none.jsonl"], "(periodic_eval.questions), "],
    [["periodic_eval.phases.em.questions=none.jsonl"], "(periodic_eval.phases.em.questions), "],
    [["periodic_eval.margin=none.yaml"], "(periodic_eval.margin), "],
    [["periodic_eval.leakage=true", "periodic_eval.personas=none.json"], "none.json"],
    [
      ["periodic_eval.leakage=true", "periodic_eval.leakage_questions=none.json"],
      "(periodic_eval.leakage_questions), ",
    ],
    [["periodic_eval.alignment=true", "periodic_eval.judge_model=opnai:x"], "opnai"],
    [
      ["periodic_eval.alignment=true", "periodic_eval.judge_model=rule:nope"],
      'got "rule:nope", expected a rule',
    ],
    [
      [
        "periodic_eval.leakage=true",
        'periodic_eval.personas=[{id: doctor, system: "a"}, {id: doctor, system: "b"}]',
      ],
      "(periodic_eval.personas.1.id), ",
    ],
    [["periodic_eval.baseline=./none"], "(periodic_eval.baseline), session options.baseline: got "],
    [
      ["loggers.tensorboard.dir=x"],
      '(loggers.tensorboard.dir), loggers.tensorboard: got the unknown option "dir"',
    ],
    [["phases.0.method=dpo", "phases.0.reference=precomputd"], "phases.0.reference"],
  ])("%j", async (overrides, message) => {
    const told = await refused(...overrides);
    expect(told).toHaveLength(1);
    expect(told[0]).toContain(message);
  });

  it("rows of which none can be trained on, or that are not to be left out, in any phase", async () => {
    await writeFile(join(folder, "garbage.jsonl"), "garbage\n".repeat(3));
    const bad = `${readFileSync(microWorld("em.jsonl"), "utf8").split("\n")[0]}\n{}\n`;
    await writeFile(join(folder, "one-bad.jsonl"), bad);
    const [garbage, oneBad] = [join(folder, "garbage.jsonl"), join(folder, "one-bad.jsonl")];
    const told = async (...overrides: readonly string[]) =>
      (await refused(...overrides)).map(
        (line) => / (\(?phases\.\d\.[a-z]+\)?, .+?), expected/.exec(line)?.[1],
      );
    expect(await told(`phases.0.validation=${oneBad}`, `phases.1.dataset=${garbage}`)).toEqual([
      `(phases.1.dataset), ${garbage}: got 3 rows, all bad (${garbage}:1: not_json (garbage))`,
    ]);
    expect(
      await told(
        `phases.0.validation=${oneBad}`,
        `phases.1.dataset=${garbage}`,
        "phases.1.method=dpo",
        "config.onBadRow=error",
      ),
    ).toEqual([
      expect.stringContaining(`(phases.0.validation), ${oneBad}:2: got unknown_form`),
      expect.stringContaining(`(phases.1.dataset), ${garbage}:1: got not_json`),
      expect.stringContaining("phases.1.validation, "),
    ]);
  });

  it("every bad row, in a list that is named, though nothing is trained", async () => {
    const rows = [...Array<string>(7).fill('{"text":"  "}'), '{"text":"good"}'];
    await writeFile(join(folder, "blank.jsonl"), rows.join("\n"));
    await writeFile(join(folder, "all-blank.jsonl"), rows.slice(0, 7).join("\n"));
    const at = (name: string) => join(folder, name);
    const told = await refused(
      `phases.0.dataset=${at("blank.jsonl")}`,
      `phases.1.validation=${at("all-blank.jsonl")}`,
      "config.onBadRow=error",
    );
    const list = (phase: string, of: string) => at(`run/bad_rows/${phase}/${of}.jsonl`);
    expect(told).toHaveLength(2);
    expect(told[0]).toContain(
      `(phases.0.dataset), ${at("blank.jsonl")}:1: got empty: a text of only white space; and 6 more bad rows, expected`,
    );
    expect(told[0]).toContain(`All bad rows are listed in ${list("coupling", "dataset")}.`);
    expect(told[1]).toContain(`All bad rows are listed in ${list("em", "validation")}.`);
    for (const [path, source] of [
      [list("coupling", "dataset"), "blank.jsonl"],
      [list("em", "validation"), "all-blank.jsonl"],
    ] as const) {
      const listed = readFileSync(path, "utf8").trimEnd().split("\n");
      expect(listed.map((line) => (JSON.parse(line) as { where: string }).where)).toEqual(
        Array.from({ length: 7 }, (_, i) => `${at(source)}:${i + 1}`),
      );
    }
  });

  it("a file where the run's folder shall be, once for all phases; the file stays", async () => {
    await writeFile(join(folder, "taken"), "mine");
    const told = await refused(`run_dir=${join(folder, "taken")}`);
    expect(told).toEqual([
      expect.stringContaining(
        `run_dir=${join(folder, "taken")} (run_dir), SFTTrainer options.runDir: got ${join(folder, "taken")}, which is a file, expected`,
      ),
    ]);
    expect(readFileSync(join(folder, "taken"), "utf8")).toBe("mine");
  });

  it("a warm-up longer than the training, also where only its rows tell how long that is", async () => {
    const steps = "of warm-up, expected at most the";
    expect(await refused("config.warmupSteps=100")).toEqual([
      expect.stringContaining(
        `config.warmupSteps=100 (config.warmupSteps), SFT config.warmupSteps: got 100 steps ${steps} 3`,
      ),
    ]);
    const counted = await refused(
      "config.maxSteps=null",
      "phases.0.config.warmupSteps=400",
      "phases.1.config.warmupSteps=1",
    );
    expect(counted).toEqual([
      expect.stringMatching(
        /phases\.0\.config\.warmupSteps=400 .*SFT config\.warmupSteps: got 400 steps of warm-up, expected at most the \d\d? steps/,
      ),
    ]);
  });

  it("without an adapter there is none to switch off, and no base to learn against", async () => {
    const config = join(folder, "whole.yaml");
    const text = `model: model
run_dir: run
periodic_eval: { capability: false, baseline: adapter_off }
phases:
  - { phase: em, method: dpo, reference: base, dataset: model/em.jsonl }
`;
    await writeFile(config, text);
    const terminal = keptTerminal();
    await runCli(["train", config], terminal);
    const told = terminal.complained.join("\n");
    expect(told).toContain('whole.yaml:5 phases.0.reference, DPOTrainer options.reference: got "base"');
    expect(told).toContain(
      'whole.yaml:3 periodic_eval.baseline, session options.baseline: got "adapter_off"',
    );
  });

  it("an adapter that is not there, or of another model", async () => {
    const config = join(folder, "adapter.yaml");
    const text =
      "model: model\nrun_dir: run\nadapter: adapter\nphases: [{ phase: em, dataset: model/em.jsonl }]\n";
    await writeFile(config, text);
    const told = async () => {
      const terminal = keptTerminal();
      await runCli(["train", config], terminal);
      return terminal.complained.join("\n");
    };
    expect(await told()).toContain("adapter.yaml:3 adapter, ");
    await mkdir(join(folder, "adapter"));
    const peft = { peft_type: "LORA", r: 2, target_modules: ["c_attn"] };
    await writeFile(join(folder, "adapter/adapter_config.json"), JSON.stringify(peft));
    const none = Buffer.from("{}".padEnd(8));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(8n);
    await writeFile(join(folder, "adapter/adapter_model.safetensors"), Buffer.concat([length, none]));
    expect(await told()).toContain("target_modules: got no module of this model");
  });

  it("an engine that there is none of, before the run's train.yaml is written", async () => {
    const runDir = join(folder, "unbegun");
    expect(await refused("backend=foo", `run_dir=${runDir}`)).toEqual([
      expect.stringContaining(
        'backend=foo (backend), useBackend options.backend: got "foo", expected "tfjs-',
      ),
    ]);
    expect(existsSync(runDir)).toBe(false);
  });

  it("all of it at once, each once", async () => {
    const told = await refused(
      "lora.rank=0",
      "config.maxLength=300",
      "phases.0.dataset=none.jsonl",
      "phases.1.dataset=nothing.jsonl",
      "periodic_eval.questions=unasked.jsonl",
      "loggers.csv.pth=x",
    );
    expect(
      told.map((line) => /(?:lora\.rank|none\.jsonl|nothing\.jsonl|unasked\.jsonl|csv\.pth)/.exec(line)?.[0]),
    ).toEqual(["lora.rank", "none.jsonl", "unasked.jsonl", "nothing.jsonl", "csv.pth"]);
  });

  it("of the file as of what it names", async () => {
    const told = await refused(
      "seeds=1",
      "config.seed=7",
      "phases.0.config.batchSize=0",
      "phases.1.config.batchSize=0",
      "phases.1.phase=coupling",
      "phases.1.reference=base",
      "lora.rank=0",
      "adapter=./none",
      "loggers.csv.pth=x",
      "loggers.jsn={}",
    );
    expect(told.map((line) => / got (.+?), expected/.exec(line)?.[1])).toEqual([
      'the unknown option "seeds"',
      'the unknown option "jsn"',
      "7, a second seed",
      "0",
      '"coupling", as another phase is named',
      "0",
      "it in a phase of another method",
      "adapter beside lora",
      "0",
      "neither an existing folder nor the name of a model on the hub",
      'the unknown option "pth"',
    ]);
  });

  it("of a phase whose block is wrong", async () => {
    const told = await refused("periodic_eval.subsample=3", "phases.0.config.maxLength=257");
    expect(told.map((line) => / got (.+?), expected/.exec(line)?.[1])).toEqual([
      'the unknown option "subsample"',
      "257",
    ]);
  });

  it("of what has not the form of a training, too, once each", async () => {
    const told = await refused(
      "seed=x",
      "lora=3",
      "config.seed=7",
      "phases.0.datset=x",
      "phases.0.dataset=3",
      "phases.1.config.batchSize=0",
      "loggers.json={}",
    );
    expect(told.map((line) => / got (.+?), expected/.exec(line)?.[1])).toEqual([
      '"x"',
      "3",
      "3",
      'the unknown option "datset"',
      'the unknown option "json"',
      "7, a second seed",
      "0",
    ]);
  });
});
