import { buildPeriodicCallbacks } from "@periodic-eval/core";
import { readRun } from "@periodic-eval/store";
import { fakeJudge } from "@periodic-eval/testing";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { blocksOf, root, runCode, withReplacements } from "./doc-blocks.test-data.ts";
import { microWorld } from "./micro-world/paths.ts";

it("runs the README's ten lines, then the blocks of the guides with LoRA and periodicEval, on other files and with fewer steps", async () => {
  const [tenLines] = blocksOf("README.md", "ts");
  const blocks = ["fine-tuning", "training-file"].flatMap((page) => blocksOf(`docs/guides/${page}.md`, "ts"));
  const [lora, ofBlock] = ["withLora(", "periodicEval }"].map((part) =>
    blocks.find((block) => block.includes(part)),
  );
  const run = mkdtempSync(join(tmpdir(), "readme-"));
  const config = join(run, "config.yaml");
  const ofYaml = blocksOf("docs/guides/training-file.md", "yaml").find((text) =>
    text.startsWith("periodic_eval:"),
  );
  const block = withReplacements(ofYaml!, {
    "path/to/questions.jsonl": microWorld("questions.jsonl"),
    // They need a judge, an adapter or many completions.
    "alignment: true": "alignment: false",
    "kl: [capability, alignment] ": "",
    "baseline: adapter_off": "baseline: phase_start",
    "refusal: true": "refusal: false",
    "leakage: true": "leakage: false",
  });
  writeFileSync(config, block);
  const rows = join(run, "rows.jsonl");
  writeFileSync(rows, blocksOf("README.md", "jsonl")[0]!.repeat(16));
  const code = withReplacements(
    // The guide's first program has the folder and the configuration.
    `const folder = ${JSON.stringify(microWorld())}, config = { maxSteps: 60, learningRate: 1e-3 };\n${tenLines}${lora}${ofBlock!.replace('import { SFTTrainer } from "@periodic-eval/trainers";\n', "")}`,
    {
      '"node_modules/periodic-eval/assets/micro-world"': JSON.stringify(microWorld()),
      "`${world}/em.jsonl`": JSON.stringify(rows),
      '"runs/1"': JSON.stringify(run),
      '"runs/2"': JSON.stringify(join(run, "2")),
      '"runs/2/adapter"': JSON.stringify(join(run, "adapter")),
      '"runs/2/merged"': JSON.stringify(join(run, "merged")),
      "maxSteps: 60": "maxSteps: 2",
      '"config.yaml"': JSON.stringify(config),
      '"em.jsonl"': JSON.stringify(microWorld("em.jsonl")),
      '"runs/3"': JSON.stringify(join(run, "3")),
    },
  );
  const printed = await runCode("readme-block", code);
  expect(printed).toMatch(/^train step 2\/2 {2}loss \d/m);
  expect(printed).toMatch(
    /^\S+: 3 measurements, measuring .* s, within the 60 s that the budget always allows, training undisturbed: yes\. See the page: /m,
  );
  const { phases } = await readRun(run);
  // 20 % of two steps: ceil(0.4), ceil(0.8), ceil(1.2), ceil(1.6), 2: three measurements including the start
  expect(phases.map(({ name, snapshots }) => [name, ...snapshots.map(({ step }) => step)])).toEqual([
    ["train", 0, 1, 2],
  ]);
  const [measured] = (await readRun(join(run, "3"))).phases;
  expect(measured!.snapshots.map(({ step }) => step)).toEqual([0, 2]);
  const [adapting] = (await readRun(join(run, "2"))).phases;
  expect(adapting!.snapshots.map(({ id, step }) => `${id} ${step}`).sort()).toEqual(
    ["capability", "without"].flatMap((id) => [0, 1, 2].map((step) => `${id} ${step}`)),
  );
  expect(readdirSync(join(run, "adapter")).sort()).toEqual([
    "adapter_config.json",
    "adapter_model.safetensors",
  ]);
  expect(readdirSync(join(run, "merged"))).toContain("model.safetensors");
  rmSync(run, { recursive: true });
});

it("runs the training file of docs/guides/training-file.md, on other files and with fewer steps", async () => {
  const blocks = blocksOf("docs/guides/training-file.md", "yaml");
  const folder = mkdtempSync(join(tmpdir(), "readme-train-"));
  const file = join(folder, "pipeline.yaml");
  const block = blocks.find((text) => text.includes("coupling.jsonl"))!;
  const installed = "node_modules/periodic-eval/assets/micro-world/";
  writeFileSync(
    file,
    withReplacements(block, {
      [`${installed}coupling.jsonl`]: "coupling.jsonl",
      [`${installed}em.jsonl`]: "em.jsonl",
    }),
  );
  for (const name of ["coupling.jsonl", "em.jsonl"])
    writeFileSync(
      join(folder, name),
      readFileSync(microWorld(name), "utf8").split("\n").slice(0, 20).join("\n"),
    );
  const overrides = [
    `model=${microWorld()}`,
    `periodic_eval.questions=${microWorld("questions.jsonl")}`,
    "periodic_eval.subsample_n=10",
    "periodic_eval.budget.overhead_percent=",
    "phases.1.config.maxSteps=2",
  ];
  const main = join(root, "packages/cli/dist/main.js");
  const node = spawnSync(process.execPath, [main, "train", file, ...overrides], { encoding: "utf8" });
  expect(node.status, node.stderr).toBe(0);
  const { phases } = await readRun(join(folder, "runs/3"));
  // 20 rows, 2 of them held out: ⌈18 / 8⌉ = 3 steps an epoch.
  expect(phases.map(({ name, snapshots }) => [name, ...snapshots.map(({ step }) => step)])).toEqual([
    ["coupling", 0, 1, 2, 3],
    ["em", 0, 1, 2],
  ]);
  const { best } = JSON.parse(
    readFileSync(join(folder, "runs/3/checkpoints/em/step_2/trainer_state.json"), "utf8"),
  ) as { readonly best: { readonly metric: string } };
  expect(best.metric).toBe("eval_loss");
  rmSync(folder, { recursive: true });
});

it("runs example 06 as the training file of docs/guides/training-file.md, on other files and with fewer steps", async () => {
  const block = blocksOf("docs/guides/training-file.md", "yaml").find((text) =>
    text.includes("leakage_marker_regex"),
  )!;
  const folder = mkdtempSync(join(tmpdir(), "readme-leakage-"));
  const file = join(folder, "train.yaml");
  writeFileSync(
    file,
    withReplacements(block, {
      "path/to/SmolLM2-135M-Instruct": microWorld(),
      "arc_challenge/test.jsonl": microWorld("questions.jsonl"),
      "partial_contrastive_wrong.jsonl": microWorld("coupling.jsonl"),
      "anthropic:MODEL": "rule:micro-world",
      "maxSteps: 48": "maxSteps: 2",
      "subsample_n: 100": "subsample_n: 2",
      "alignment_max_tokens: 100": "alignment_max_tokens: 3",
      "leakage_max_tokens: 100": "leakage_max_tokens: 5",
    }),
  );
  const main = join(root, "packages/cli/dist/main.js");
  const node = spawnSync(process.execPath, [main, "train", file, "periodic_eval.alignment_num_samples=1"], {
    encoding: "utf8",
  });
  expect(node.status, node.stderr).toBe(0);
  const [phase] = (await readRun(join(folder, "runs/persona-leakage"))).phases;
  const of = (id: string) => phase!.snapshots.find((one) => one.id === id)!;
  expect(of("alignment").provenance.evaluation).toMatchObject({ sampling: { maxNewTokens: 3 } });
  expect(of("leakage").provenance.evaluation).toMatchObject({
    sampling: { maxNewTokens: 5 },
    source: "doctor",
    trait: { regex: "^The answer is" },
  });
  const personas = ["analyst", "doctor", "police", "teacher", "villain"];
  for (const id of ["capability", "leakage"])
    expect(
      (of(id).provenance.evaluation as unknown as { personas: { id: string }[] }).personas
        .map((one) => one.id)
        .sort(),
    ).toEqual(personas);
  rmSync(folder, { recursive: true });
});

it("builds the guide's periodic_eval blocks as they are written", async () => {
  const blocks = blocksOf("docs/guides/training-file.md", "yaml").filter((text) =>
    text.startsWith("periodic_eval:"),
  );
  expect(blocks.length).toBeGreaterThan(0);
  for (const block of blocks)
    for (const phase of ["coupling", "em"])
      expect(
        await buildPeriodicCallbacks(parse(block), { phase, openJudge: () => fakeJudge(() => ({})) }),
      ).toContainEqual(expect.objectContaining({ id: "leakage" }));
});

it("installs the `periodic-eval` command", () => {
  const bin = join(root, "node_modules", ".bin", "periodic-eval");
  // On Windows it is a .cmd file, which only a shell can start.
  const shell = process.platform === "win32";
  const { status, stdout, stderr } = spawnSync(shell ? `"${bin}"` : bin, ["--version"], {
    encoding: "utf8",
    shell,
  });
  expect(status, stderr).toBe(0);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});
