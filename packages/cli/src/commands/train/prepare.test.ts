import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetWriteBuffer } from "hyparquet-writer";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import {
  datasetCommit,
  hostDataset,
  startHub,
  type HubServer,
} from "../../../../data/src/hub/hub-server.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCli } from "../../program.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  // Without weights, loading them before the file is checked would fail with another error.
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

/** Returns the error lines for the file with these overrides, and checks that nothing is written. */
async function errorsOf(...overrides: readonly string[]): Promise<readonly string[]> {
  const terminal = recordingTerminal();
  expect(await runCli(["train", join(folder, "train.yaml"), ...overrides], terminal)).toBe(1);
  expect(existsSync(join(folder, "run", "checkpoints"))).toBe(false);
  expect(terminal.outputs).toEqual([]);
  return terminal.errors.join("\n").split("\n");
}

it("places a wrong leakage_source at its key, also if the personas come from a file", async () => {
  const personas = join(folder, "personas.yaml");
  await writeFile(personas, "doctor: You are a doctor.\npirate: You are a pirate.\n");
  const block = `{ leakage: true, capability: false, leakage_source: pirat, personas: ${JSON.stringify(personas)} }`;
  const [error, ...rest] = await errorsOf(`periodic_eval=${block}`);
  expect(error).toMatch(
    /\(periodic_eval\.leakage_source\): got "pirat" with the personas doctor, pirate, expected/,
  );
  expect(error).toContain('Did you mean "pirate"?');
  // The other phase has the same error.
  expect(rest.every((line) => line === "" || line.includes("leakage_source"))).toBe(true);
});

it.each([
  [
    "personas.jsonl",
    '{"id":"doctor","system":"You are a doctor."}\n{"id":"a b","system":"x"}\n',
    "jsonl:2.id",
  ],
  ["personas.yaml", "- { id: doctor, system: 3 }\n", "yaml[0].system"],
])("places wrong rows of %s at the option that names it", async (name, content, place) => {
  const personas = join(folder, name);
  await writeFile(personas, content);
  const block = `{ leakage: true, capability: false, leakage_source: doctor, personas: ${JSON.stringify(personas)} }`;
  const [error] = await errorsOf(`periodic_eval=${block}`);
  expect(error).toContain("(periodic_eval.personas), ");
  expect(error).toContain(place);
});

describe("train reports errors of a file before it loads weights", () => {
  it.each<[overrides: readonly string[]]>([
    [[]],
    [["config.activationCheckpointing=true"]],
    [["config.packing=true", "config.maxLength=64"]],
    [["phases.0.config.maxLength=256"]],
  ])("gets to the weights without an error for %j", async (overrides) => {
    expect(await errorsOf(...overrides)).toEqual([expect.stringMatching(/model\.safetensors: got ENOENT/)]);
  });

  it.each<[overrides: readonly string[], message: string]>([
    [["lora.rnk=3"], '(lora.rnk): got the unknown option "rnk"'],
    [["periodic_evl={}"], '(periodic_evl): got the unknown option "periodic_evl"'],
    [["periodic_evl={}"], 'Did you mean "periodic_eval"?'],
    [["periodic_eval.periodic_evl={}"], 'Did you mean "periodic_eval"?'],
    [["periodic_eval.questions=allenai/ai2_arc"], 'Did you mean "hf:allenai/ai2_arc"? If it is a file'],
    [["lora.rank=0"], "(lora.rank): got 0, expected a positive integer"],
    [["lora.rank=1025"], "(lora.rank): got 1025, expected at most"],
    [["lora.targetModules=[q_prj]"], '(lora.targetModules.0): got "q_prj"'],
    [["lora.layersToTransform=[3]"], "(lora.layersToTransform.0): got 3, expected layers from 0 to 2"],
    [
      ["config.maxLength=257"],
      "config.maxLength=257 (config.maxLength): got 257, expected at most 256, the model's context",
    ],
    [["phases.1.config.maxLength=257"], "(phases.1.config.maxLength): got 257"],
    [["config.validationShare=0.5"], "(config.validationShare): got 0.5 together with validation rows"],
    [["config.restore=last_clean"], '(config.restore): got "last_clean" without conditions'],
    [["phases.1.dataset=none.jsonl"], "(phases.1.dataset), "],
    [["phases.1.validation=none.jsonl"], "(phases.1.validation), "],
    [["periodic_eval.questions=none.jsonl"], "(periodic_eval.questions): got "],
    [["periodic_eval.phases.em.questions=none.jsonl"], "(periodic_eval.phases.em.questions): got "],
    [["periodic_eval.margin=none.yaml"], "(periodic_eval.margin): got "],
    [
      ["periodic_eval.leakage=true", "periodic_eval.leakage_source=null", "periodic_eval.personas=none.json"],
      "none.json",
    ],
    [
      ["periodic_eval.leakage=true"],
      "periodic_eval.leakage_source: got nothing, so that the trained persona",
    ],
    [
      [
        "periodic_eval.leakage=true",
        "periodic_eval.leakage_source=pirate",
        "periodic_eval.leakage_questions=none.json",
      ],
      "(periodic_eval.leakage_questions): got ",
    ],
    [["periodic_eval.alignment=true", "periodic_eval.judge_model=opnai:x"], "opnai"],
    [
      ["periodic_eval.alignment=true", "periodic_eval.judge_model=rule:nope"],
      'got "rule:nope", expected a known rule',
    ],
    [
      [
        "periodic_eval.leakage=true",
        'periodic_eval.personas=[{id: doctor, system: "a"}, {id: doctor, system: "b"}]',
      ],
      "(periodic_eval.personas.1.id): got ",
    ],
    [["periodic_eval.baseline=./none"], "(periodic_eval.baseline): got "],
    [["loggers.tensorboard.dir=x"], "(loggers.tensorboard.dir): got"],
    [["phases.0.method=dpo", "phases.0.reference=precomputd"], "phases.0.reference"],
  ])("rejects %j", async (overrides, message) => {
    const lines = await errorsOf(...overrides);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(message);
  });

  it("reports datasets without a usable row, and bad rows with onBadRow=error, in any phase", async () => {
    await writeFile(join(folder, "garbage.jsonl"), "garbage\n".repeat(3));
    const bad = `${readFileSync(microWorld("em.jsonl"), "utf8").split("\n")[0]}\n{}\n`;
    await writeFile(join(folder, "one-bad.jsonl"), bad);
    const [garbage, oneBad] = [join(folder, "garbage.jsonl"), join(folder, "one-bad.jsonl")];
    const problems = async (...overrides: readonly string[]) =>
      (await errorsOf(...overrides)).map(
        (line) => / (\(?phases\.\d\.[a-z]+\)?, .+?), expected/.exec(line)?.[1],
      );
    expect(await problems(`phases.0.validation=${oneBad}`, `phases.1.dataset=${garbage}`)).toEqual([
      `(phases.1.dataset), ${garbage}: got 3 rows, all bad (${garbage}:1: not_json (garbage))`,
    ]);
    expect(
      await problems(
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

  it("lists every bad row in a file that the error names", async () => {
    const rows = [...Array<string>(7).fill('{"text":"  "}'), '{"text":"good"}'];
    await writeFile(join(folder, "blank.jsonl"), rows.join("\n"));
    await writeFile(join(folder, "all-blank.jsonl"), rows.slice(0, 7).join("\n"));
    const at = (name: string) => join(folder, name);
    const lines = await errorsOf(
      `phases.0.dataset=${at("blank.jsonl")}`,
      `phases.1.validation=${at("all-blank.jsonl")}`,
      "config.onBadRow=error",
    );
    const list = (phase: string, of: string) => at(`run/bad_rows/${phase}/${of}.jsonl`);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain(
      `(phases.0.dataset), ${at("blank.jsonl")}:1: got empty: only white space; and 6 more bad rows, expected`,
    );
    expect(lines[0]).toContain(`All bad rows are listed in ${list("coupling", "dataset")}.`);
    expect(lines[1]).toContain(`All bad rows are listed in ${list("em", "validation")}.`);
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

  it("reports once that run_dir is a file, and keeps the file", async () => {
    await writeFile(join(folder, "taken"), "mine");
    const lines = await errorsOf(`run_dir=${join(folder, "taken")}`);
    expect(lines).toEqual([
      expect.stringContaining(
        `run_dir=${join(folder, "taken")} (run_dir), ${join(folder, "taken")}: got EEXIST (a file is in the place of a folder), expected`,
      ),
    ]);
    expect(readFileSync(join(folder, "taken"), "utf8")).toBe("mine");
  });

  it.skipIf(!existsSync("/proc/self"))("reports at once a run_dir that cannot be created", async () => {
    expect(await errorsOf("run_dir=/proc/periodic-eval/run")).toEqual([
      expect.stringContaining(
        "run_dir=/proc/periodic-eval/run (run_dir), /proc/periodic-eval/run: got ENOENT",
      ),
    ]);
  });

  it("rejects a warm-up longer than the training, even if the length follows from the rows", async () => {
    const steps = "of warm-up, expected at most the";
    expect(await errorsOf("config.warmupSteps=100")).toEqual([
      expect.stringContaining(`config.warmupSteps=100 (config.warmupSteps): got 100 steps ${steps} 3`),
    ]);
    const counted = await errorsOf(
      "config.maxSteps=null",
      "phases.0.config.warmupSteps=400",
      "phases.1.config.warmupSteps=1",
    );
    expect(counted).toEqual([
      expect.stringMatching(
        /phases\.0\.config\.warmupSteps=400 .*\(phases\.0\.config\.warmupSteps\): got 400 steps of warm-up, expected at most the \d\d? steps/,
      ),
    ]);
  });

  it("rejects adapter_off and a base reference without an adapter", async () => {
    const config = join(folder, "whole.yaml");
    const text = `model: model
run_dir: run
periodic_eval: { capability: false, baseline: adapter_off }
phases:
  - { phase: em, method: dpo, reference: base, dataset: model/em.jsonl }
`;
    await writeFile(config, text);
    const terminal = recordingTerminal();
    await runCli(["train", config], terminal);
    const output = terminal.errors.join("\n");
    expect(output).toContain('whole.yaml:5 phases.0.reference: got "base"');
    expect(output).toContain('whole.yaml:3 periodic_eval.baseline: got "adapter_off"');
  });

  it("rejects a missing adapter and an adapter of another model", async () => {
    const config = join(folder, "adapter.yaml");
    const text =
      "model: model\nrun_dir: run\nadapter: adapter\nphases: [{ phase: em, dataset: model/em.jsonl }]\n";
    await writeFile(config, text);
    const output = async () => {
      const terminal = recordingTerminal();
      await runCli(["train", config], terminal);
      return terminal.errors.join("\n");
    };
    expect(await output()).toContain("adapter.yaml:3 adapter, ");
    await mkdir(join(folder, "adapter"));
    const peft = { peft_type: "LORA", r: 2, target_modules: ["c_attn"] };
    await writeFile(join(folder, "adapter/adapter_config.json"), JSON.stringify(peft));
    const none = Buffer.from("{}".padEnd(8));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(8n);
    await writeFile(join(folder, "adapter/adapter_model.safetensors"), Buffer.concat([length, none]));
    expect(await output()).toContain("target_modules: got no module of this model");
  });

  it("rejects an unknown backend before it writes train.yaml", async () => {
    const runDir = join(folder, "unbegun");
    expect(await errorsOf("backend=foo", `run_dir=${runDir}`)).toEqual([
      expect.stringContaining('backend=foo (backend): got "foo", expected "tfjs-'),
    ]);
    expect(existsSync(runDir)).toBe(false);
  });

  it("reports all errors together, each once", async () => {
    const lines = await errorsOf(
      "lora.rank=0",
      "config.maxLength=300",
      "phases.0.dataset=none.jsonl",
      "phases.1.dataset=nothing.jsonl",
      "periodic_eval.questions=unasked.jsonl",
      "loggers.csv.pth=x",
    );
    expect(
      lines.map(
        (line) => /(?:lora\.rank|none\.jsonl|nothing\.jsonl|unasked\.jsonl|csv\.pth)/.exec(line)?.[0],
      ),
    ).toEqual(["lora.rank", "none.jsonl", "unasked.jsonl", "nothing.jsonl", "csv.pth"]);
  });

  it("reports errors in the file together with errors in the files that it names", async () => {
    const lines = await errorsOf(
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
    expect(lines.map((line) => / got (.+?), expected/.exec(line)?.[1])).toEqual([
      'the unknown option "seeds"',
      'the unknown option "jsn"',
      "7, a second seed",
      "0",
      '"coupling", the name of an earlier phase',
      "0",
      "a reference in a phase without method: dpo",
      "adapter together with lora",
      "0",
      "neither an existing folder nor the name of a model on the hub",
      'the unknown option "pth"',
    ]);
  });

  it("reports the other errors of a phase with an invalid periodic_eval block", async () => {
    const lines = await errorsOf("periodic_eval.subsample=3", "phases.0.config.maxLength=257");
    expect(lines.map((line) => / got (.+?), expected/.exec(line)?.[1])).toEqual([
      'the unknown option "subsample"',
      "257",
    ]);
  });

  it("reports schema errors together with content errors, each once", async () => {
    const lines = await errorsOf(
      "seed=x",
      "lora=3",
      "config.seed=7",
      "phases.0.datset=x",
      "phases.0.dataset=3",
      "phases.1.config.batchSize=0",
      "loggers.json={}",
    );
    expect(lines.map((line) => / got (.+?), expected/.exec(line)?.[1])).toEqual([
      '"x"',
      "3",
      "3",
      'the unknown option "json"',
      'the unknown option "datset"',
      "7, a second seed",
      "0",
    ]);
  });
});

describe("train with datasets of the hub", () => {
  let hub: HubServer;
  let cache = "";
  beforeEach(async () => {
    hub = await startHub();
    cache = await mkdtemp(join(tmpdir(), "prepare-hub-"));
    vi.stubEnv("HF_ENDPOINT", hub.url);
    vi.stubEnv("HF_HUB_CACHE", cache);
    for (const name of ["HF_TOKEN", "HF_HUB_OFFLINE"]) vi.stubEnv(name, "");
    const rows = readFileSync(microWorld("em.jsonl"), "utf8")
      .split("\n")
      .slice(0, 4)
      .map((line) => JSON.parse(line) as Record<"prompt" | "completion", readonly { content: string }[]>);
    const column = (name: "prompt" | "completion") => ({
      name,
      data: rows.map((row) => row[name].at(-1)!.content),
    });
    const parquet = new Uint8Array(
      parquetWriteBuffer({ columnData: [column("prompt"), column("completion")] }),
    );
    hostDataset(hub, "owner/em", {
      "default/train/0000.parquet": parquet,
      "default/test/0000.parquet": parquet,
    });
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await hub.close();
    await rm(cache, { recursive: true });
  });

  it("reads them before it loads weights", async () => {
    const sources = ["phases.0.dataset=hf:owner/em", "phases.1.validation=hf:owner/em/default/test"];
    expect(await errorsOf(...sources)).toEqual([expect.stringMatching(/model\.safetensors: got ENOENT/)]);
    const cached = join(cache, "datasets--owner--em/snapshots", datasetCommit, "default");
    expect((await readdir(cached)).toSorted()).toEqual(["test", "train"]);
  });

  it("reports the place of each that cannot be had, together with a missing model", async () => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const lines = await errorsOf(
      "model=./none",
      "phases.0.dataset=hf:owner/em",
      "phases.1.dataset=hf:em",
      "phases.1.validation=none.jsonl",
    );
    expect(lines.map((line) => / \(([\w.]+)\)/.exec(line)?.[1])).toEqual([
      "model",
      "phases.0.dataset",
      "phases.1.dataset",
      "phases.1.validation",
    ]);
    expect(lines[1]).toMatch(/data get hf:owner\/em\/train --out FOLDER` .*, or unset HF_HUB_OFFLINE\.$/);
    const withModel = await errorsOf("phases.0.dataset=hf:owner/em", "phases.1.validation=hf:owner/em");
    expect(withModel.map((line) => / \(([\w.]+)\)/.exec(line)?.[1])).toEqual([
      "phases.0.dataset",
      "phases.1.validation",
    ]);
  });

  it("has the same steps in plan", async () => {
    const terminal = recordingTerminal();
    const path = join(folder, "plan.yaml");
    const text = readFileSync(join(folder, "train.yaml"), "utf8")
      .replace("maxSteps: 3", "epochs: 3, batchSize: 2")
      .replace(/\n {2}- \{ phase: em.*$/s, "\n")
      .replace("model/coupling.jsonl", "hf:owner/em");
    await writeFile(path, text);
    expect(await runCli(["plan", path, "--json"], terminal)).toBe(0);
    // 4 rows are 2 steps an epoch.
    const { callbacks } = JSON.parse(terminal.outputs.join("\n")) as {
      readonly callbacks: readonly { readonly steps: readonly number[] }[];
    };
    expect(callbacks[0]!.steps.at(-1)).toBe(6);
  });
});
