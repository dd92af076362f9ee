import { copyFileSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { microWorld } from "../demo/micro-world.ts";
import { runCli } from "../program.ts";
import { recordingTerminal } from "../terminal/recording-terminal.test-data.ts";

const folder = temporaryFolder(afterAll);
beforeAll(async () => {
  await mkdir(join(folder, "model"));
  // Without weights, a mistake that is not found before they load is another error.
  for (const name of await readdir(microWorld()))
    if (!name.endsWith(".safetensors")) copyFileSync(microWorld(name), join(folder, "model", name));
  await writeFile(join(folder, "bad.jsonl"), '{"id":"doctor","system":"You."}\n{"id":"a b","system":"x"}\n');
  await writeFile(join(folder, "probes.yaml"), "- { id: sky, truee: [The sky is blue.] }\n");
});
beforeEach(() => {
  for (const name of ["OPENAI_API_KEY", "JUDGE_MODEL"]) vi.stubEnv(name, undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

const right = `model: model
backend: cpu
run_dir: run
phases:
  - { phase: em, dataset: model/em.jsonl }
config: { maxSteps: 3 }
periodic_eval:
  questions: model/questions.jsonl
`;

/** A mistake: lines after the file's last one, or a part of the file and what stands there instead. */
type Mistake = string | readonly [part: string, mistake: string];

/** Each mistake with its line and path, and with what the message says then. `…` stands for any text, `~` for the folder. */
const mistakes: readonly (readonly [mistake: Mistake, place: string, message: string])[] = [
  [
    "  subsample_n: ten",
    "9 periodic_eval.subsample_n",
    'got "ten", expected a finite number or "all". Correct the option.',
  ],
  [
    '  subsample_n: "10"',
    "9 periodic_eval.subsample_n",
    'got "10", expected a finite number or "all". Remove the quotes.',
  ],
  [
    "  notify: {}",
    "9 periodic_eval.notify",
    "got nothing, expected a webhook or `desktop: true`. Name the variable that has the address of a webhook, or set `desktop`.",
  ],
  [
    "  notify: { url_env: 'https://hooks.test/secret' }",
    "9 periodic_eval.notify.url_env",
    "got a value that is no name of a variable, expected the name of an environment variable. Put the address into a variable, and write its name.",
  ],
  [
    "  eval_every_percent: 20%",
    "9 periodic_eval.eval_every_percent",
    'got "20%", expected a number from 0.001 to 100. Write 20.',
  ],
  [
    "  eval_every_percent: 120",
    "9 periodic_eval.eval_every_percent",
    "got 120, expected a number from 0.001 to 100. Correct the option.",
  ],
  [
    "  schedule: { every_stepps: 5 }",
    "9 periodic_eval.schedule.every_stepps",
    'got the unknown option "every_stepps", expected one of every_steps, every_epochs, every_seconds, at_steps, at_percents, times_per_phase. Did you mean "every_steps"?',
  ],
  [
    "  schedule: [5]",
    "9 periodic_eval.schedule",
    "got [5], expected an object (every_steps, every_epochs, every_seconds, at_steps, at_percents, times_per_phase). Write an object instead of a list.",
  ],
  [
    '  schedule: { at_percents: [10, "20%"] }',
    "9 periodic_eval.schedule.at_percents.1",
    'got "20%", expected a number above 0 and at most 100. Write 20.',
  ],
  [
    "  schedule: { times_per_phase: 0 }",
    "9 periodic_eval.schedule.times_per_phase",
    "got 0, expected a number of 1 or more. Correct the option.",
  ],
  [
    "  budget: { overheadPercent: 5 }",
    "9 periodic_eval.budget.overheadPercent",
    'got the unknown option "overheadPercent", expected one of overhead_percent, grace_seconds,…. Did you mean "overhead_percent"?',
  ],
  [
    "  overhead_percent: 5",
    "9 periodic_eval.overhead_percent",
    'got the unknown option "overhead_percent", expected one of the 53 known ones. Did you mean "budget.overhead_percent"? Set budget: { overhead_percent: 5 }.',
  ],
  [
    '  budget: { overhead_percent: "5%" }',
    "9 periodic_eval.budget.overhead_percent",
    'got "5%", expected a finite number. Write 5.',
  ],
  [
    "  leakage: { source: pirate }",
    "9 periodic_eval.leakage",
    'got {"source":"pirate"}, expected true or false. Write `leakage: true` and next to it `leakage_source`.',
  ],
  [
    "  leakage: true",
    "8 periodic_eval.leakage_source",
    "got nothing, so that the trained persona would count as one that the trait spread to, expected the id of the persona that the trait is…. Write the persona's id, or null if the trait is trained into no persona.",
  ],
  [
    "  leakage: true\n  leakage_source: pirat",
    "10 periodic_eval.leakage_source",
    'got "pirat" with the personas none, empty, assistant, doctor, teacher, engineer, lawyer, gardener, comedian, p…ed the id of one of several personas. Did you mean "pirate"?',
  ],
  [
    "  leakage: true\n  leakage_source: pirate\n  leakage_marker: x",
    "11 periodic_eval.leakage_marker",
    'got the unknown option "leakage_marker", expected one of the 53 known ones. Did you mean "leakage_marker_token"?',
  ],
  [
    "  refusal: { questions: none.csv }",
    "9 periodic_eval.refusal.questions",
    'got "~/none.csv", which does not exist, expected a readable file. …',
  ],
  [
    '  refusal: { questions: model/questions.jsonl, judge_model: "anthropc:m" }',
    "9 periodic_eval.refusal.judge_model",
    'got "anthropc:m", expected …',
  ],
  [
    '  refusal: { judge_model: "rule:micro-world" }',
    "9 periodic_eval.refusal.judge_model",
    'got "rule:micro-world", a rule for alignment, expected a judge model for refusal. Name one …',
  ],
  [
    "  refusal: { questions: bad.jsonl }",
    "9 periodic_eval.refusal.questions, ~/bad.jsonl:1",
    "got no prompt …, expected prompt: a non-empty string. Name prompts in the format of XSTest: the columns prompt and label, and id if you like.",
  ],
  [
    "  refusal: { subsample: 50 }",
    "9 periodic_eval.refusal.subsample",
    'got the unknown option "subsample", expected one of every_percent, schedule, questions, subsample_n, max_tokens, judge_model. Did you mean "subsample_n"?',
  ],
  [
    "  traits: { layer: -1 }",
    "9 periodic_eval.traits.layer",
    "got -1, expected a number of 0 or more. Correct the option.",
  ],
  [
    "  traits: { layers: 3 }",
    "9 periodic_eval.traits.layers",
    'got the unknown option "layers", expected one of every_percent, schedule, layer. Did you mean "layer"?',
  ],
  [
    "  leakage: true\n  leakage_source: pirate\n  personas: bad.jsonl",
    "11 periodic_eval.personas, ~/bad.jsonl:2.id",
    'got "a b", expected a name that matches ^[A-Za-z0-9][\\w.-]*$. Use letters, digits, dots, dashes and underscores: ids name metrics.',
  ],
  [
    "  leakage: true\n  leakage_source: pirate\n  leakage_questions: none.jsonl",
    "11 periodic_eval.leakage_questions",
    'got "~/none.jsonl", which does not exist, expected a readable file. Check the path: it is relative to ..',
  ],
  [
    '  leakage: true\n  leakage_source: pirate\n  leakage_marker_regex: "["',
    "11 periodic_eval.leakage_marker_regex",
    'got "[", expected a JavaScript pattern (Invalid regular expression: /[/: Unterminated character class). Correct the pattern, or use a string for a literal marker.',
  ],
  [
    "  alignment: true",
    "8 periodic_eval.judge_model",
    "got no model, expected openai:MODEL, anthropic:MODEL or a mode…. Set judge_model in the configuration, or set the environment variable JUDGE_MODEL.",
  ],
  [
    "  alignment: true\n  judge_model: openai:gpt-4o",
    "10 periodic_eval.judge_model",
    "got no value in the environment variable OPENAI_API_KEY, expected an API key. Set OPENAI_API_KEY; keys are read from the environment only.",
  ],
  [
    "  alignment: true\n  judge_model: nonsense",
    "10 periodic_eval.judge_model",
    'got "nonsense", a model name without a provider, and OPENAI_API_KEY is not set, expected openai:MODEL, anthropic:MODEL or a mode…. Name another judge, or set OPENAI_API_KEY.',
  ],
  [
    "  alignment: true\n  judge_model: opnai:gpt-4o",
    "10 periodic_eval.judge_model",
    'got "opnai:gpt-4o", expected openai:MODEL, anthropic:MODEL or a mode…. Did you mean "openai:gpt-4o"? Write openai:opnai:gpt-4o for a model of that name on a server.',
  ],
  [
    "  alignment: true\n  judge_model: folder:missing",
    "10 periodic_eval.judge_model",
    'got "folder:~/missing", and no folder ~/missing, expected an existing folder of a model. Correct the path; hf:owner/name opens a model of the hub.',
  ],
  [
    "  alignment: true\n  judge_model: rule:micro-world\n  judge_max_cost: 3",
    "11 periodic_eval.judge_max_cost",
    "got 3 without a price, expected a price to compute the cost with. Set judge_price: { input_per_million, output_per_million }, or use judge_max_calls.",
  ],
  [
    "  alignment: yes please",
    "9 periodic_eval.alignment",
    'got "yes please", expected true or false. Correct the option.',
  ],
  [
    "  margin: probes.yaml",
    "9 periodic_eval.margin, ~/probes.yaml",
    'got [{"id":"sky","truee":["The sky is blue."]}], expected an object of at least one variant. Write { variant: { affirm: [string], negate: [string] } }.',
  ],
  [
    "  margin: none.yaml",
    "9 periodic_eval.margin",
    'got "~/none.yaml", which does not exist, expected a readable text file. Check the path: it is relative to ..',
  ],
  [
    "  kl: [leakage]",
    "9 periodic_eval.kl",
    'got "leakage", which is not measured, expected capability, or a measured evaluation: capability. Remove "leakage", or measure it.',
  ],
  [
    "  kl: [leakge]",
    "9 periodic_eval.kl.0",
    'got "leakge", expected "capability" or "alignment" or "leakage" or "margin". Did you mean "leakage"?',
  ],
  [
    "  baseline: runstart",
    "9 periodic_eval.baseline",
    'got "runstart", expected "phase_start", "run_start", "adapter_off" or a path such as ./runs/1. Did you mean "run_start"?',
  ],
  [
    "  baseline: ./runs/none",
    "9 periodic_eval.baseline",
    'got ~/runs/none, which has no snapshot, expected the folder of an earlier run, or its folder of snapshots. Give the `runDir` of that run, or "phase_start".',
  ],
  [
    "  personas:\n    - { id: doctor, system: 3 }",
    "10 periodic_eval.personas.0.system",
    "got 3, expected a string or null or an object (text). Correct the option.",
  ],
  [
    "  capability_method: clozed",
    "9 periodic_eval.capability_method",
    'got "clozed", expected "letters" or "cloze". Did you mean "cloze"?',
  ],
  [
    "  phases: { emm: { kl: true } }",
    "9 periodic_eval.phases.emm",
    'got "emm", expected a phase of the run: "em". Write "em", or list all phases of the run.',
  ],
  [
    "  phases: { em: { subsample_n: 0 } }",
    "9 periodic_eval.phases.em.subsample_n",
    "got 0, expected a number of 1 or more. Correct the option.",
  ],
  [
    "  evaluations: [{ task: gsm9k }]",
    "9 periodic_eval.evaluations.0.task",
    'got "gsm9k", expected arc_challenge, arc_easy, hellaswag, truthfulqa_mc2, gsm8k, ifeval, mmlu, or a part of one. Did you mean "gsm8k"?',
  ],
  [
    "  evaluations:\n    - { tsk: gsm8k }",
    "10 periodic_eval.evaluations.0",
    'got tsk, expected one of task, benchmark, win_rate, kl_to_reference, feedback. Did you mean "task"?',
  ],
  [
    "  evaluations:\n    - { task: gsm8k, data: nowhere }",
    "10 periodic_eval.evaluations.0.data",
    'got "~/nowhere", which does not exist, expected a folder, a file, or hf:owner/dataset. …. `npx periodic-eval data get gsm8k --out FOLDER` writes FOLDER/gsm8k; or name hf:openai/gsm8k.',
  ],
  [
    "  evaluations:\n    - { task: gsm8k, data: model, limt: 3 }",
    "10 periodic_eval.evaluations.0.limt",
    'got the unknown option "limt", expected one of task, data, shots, fewshot_pool, fewshot_seed, limit, subsample_n, subsample_seed, chat. Did you mean "limit"?',
  ],
  [
    "  evaluations:\n    - { benchmark: model, num_samples: 0 }",
    "10 periodic_eval.evaluations.0.num_samples",
    "got 0, expected a positive integer. Correct the option.",
  ],
  [
    "  evaluations:\n    - { win_rate: none.jsonl }",
    "10 periodic_eval.evaluations.0.reference",
    "got nothing, expected a model (a folder, or owner/name on the hub), or a file of answers (.jsonl). Correct the option.",
  ],
  [
    ["questions: model/questions.jsonl", "questions: allenai/ai2_arc"],
    "8 periodic_eval.questions",
    'got "~/allenai/ai2_arc", expected a file that ends in .jsonl, .ndjson, .j…. Did you mean "hf:allenai/ai2_arc"? If it is a file: rename the file to match its format, or convert it.',
  ],
  [
    ["model/em.jsonl", "model/emm.jsonl"],
    "5 phases.0.dataset, ~/model/emm.jsonl",
    "got a path which does not exist, expected a readable JSON Lines or Parquet file. Check the path: it is relative to ..",
  ],
  [
    ["dataset", "datset"],
    "5 phases.0.datset",
    'got the unknown option "datset", expected one of phase, method, dataset, validation, reference, config. Did you mean "dataset"?',
  ],
  [
    ["maxSteps: 3", "maxStep: 3"],
    "6 config.maxStep",
    'got the unknown option "maxStep", expected one of the 31 known ones. Did you mean "maxSteps"?',
  ],
  [
    ["maxSteps: 3", 'maxSteps: "3"'],
    "6 config.maxSteps",
    'got "3", expected a positive integer. Remove the quotes.',
  ],
  [
    ["maxSteps: 3", "maxSteps: 3, validationShare: 20%"],
    "6 config.validationShare",
    'got "20%", expected a finite number. Write 0.2.',
  ],
  [
    ["maxSteps: 3", "maxSteps: 3, seed: 3"],
    "6 config.seed",
    "got 3, a second seed, expected only the seed at the top of the file. Remove it; to use it for the run, write seed: 3 at the top.",
  ],
  [
    ["maxSteps: 3", "maxSteps: 3, epochs: 3"],
    "6 config.epochs",
    "got epochs 3 and maxSteps 3, expected one of the two. Remove epochs or maxSteps.",
  ],
  [
    ["phase: em", "phase: em, method: ppo"],
    "5 phases.0.method",
    'got "ppo", expected "sft" or "dpo". Did you mean "dpo"?',
  ],
  [
    ["phase: em", "phase: ../em"],
    "5 phases.0.phase",
    'got "../em", expected a name that matches ^[A-Za-z0-9][\\w.-]*…tters, digits, dots, dashes and underscores, and begin with a letter or a digit: the name becomes a file name.',
  ],
  [
    ["{ phase: em, dataset: model/em.jsonl }", "model/em.jsonl"],
    "5 phases.0",
    'got "model/em.jsonl", expected a map such as { phase: em, dataset: em.jsonl }. Write its keys and values instead of a string.',
  ],
  [
    ["  - { phase: em", "  { phase: em"],
    "5 phases",
    'got {"phase":"em","dataset":"model/em.jsonl"}, expected a list of phases. Write a list: in YAML with a dash before each entry, in code in [ ].',
  ],
  [
    ["model: model", "model: modle"],
    "1 model, ~/modle",
    "got neither an existing folder nor the name of a model on the hub, expected a folder that Hugging Face libraries sa…. Check the path.",
  ],
  [
    ["run_dir: run\n", ""],
    "1 run_dir",
    "got nothing: it is missing, expected a non-empty string. Add run_dir: Folder of snapshots, checkpoints and the page, relative to this file.",
  ],
  [
    ["backend: cpu", "backend: cuda"],
    "2 backend",
    'got "cuda", expected "tfjs-node-gpu" or "tfjs-node" or "webgpu" or "wasm" or "cpu". Name one of these backends, or omit the option to use the fastest that is installed.',
  ],
  [
    ["backend: cpu", "lora: { rnk: 3 }"],
    "2 lora.rnk",
    'got the unknown option "rnk", expected one of rank, alpha, dropout, targetModules, layersToTransform, rankPattern, alphaPattern, rsLora, seed. Did you mean "rank"?',
  ],
  [
    ["backend: cpu", "lora: { targetModules: [q_prj] }"],
    "2 lora.targetModules.0",
    'got "q_prj", expected "q_proj" or "k_proj" or "v_proj" or "o_proj" or "gate_proj" or "up_proj" or "down_proj" or "lm_head". Write "q_proj".',
  ],
  [
    ["backend: cpu", "adapter: none"],
    "2 adapter, ~/none",
    "got neither an existing folder nor the name of a model on the hub, expected a folder that Hugging Face libraries sa…. Check the path.",
  ],
  [
    ["backend: cpu", "loggers: [csv]"],
    "2 loggers",
    'got ["csv"], expected a map of loggers and their options. Write an object instead of a list: { csv: {} }.',
  ],
  [
    ["backend: cpu", "loggers: { wandb: { projct: x } }"],
    "2 loggers.wandb.projct",
    'got the unknown option "projct", expected one of runDir, closeSeconds, now, project, entity, runName, config, baseUrl. Did you mean "project"?',
  ],
  [["backend: cpu", "seed: fast"], "2 seed", 'got "fast", expected an integer. Correct the value.'],
  [
    ["periodic_eval:", "periodic_evl:"],
    "8 periodic_evl",
    'got the unknown option "periodic_evl", expected one of the 14 known ones. Did you mean "periodic_eval"?',
  ],
  [
    ["config: { maxSteps: 3 }", "config:\n\tmaxSteps: 3"],
    "7",
    "got Tabs are not allowed as indentation, expected YAML or JSON. Indent with spaces instead of tabs.",
  ],
];

/** Returns the lines of errors for a file with the mistake. */
async function linesFor(mistake: Mistake): Promise<readonly string[]> {
  const yaml = typeof mistake === "string" ? `${right}${mistake}\n` : right.replace(...mistake);
  await writeFile(join(folder, "train.yaml"), yaml);
  const terminal = recordingTerminal();
  expect(await runCli(["train", join(folder, "train.yaml")], terminal)).toBe(1);
  expect(terminal.outputs).toEqual([]);
  return terminal.errors.join("\n").replaceAll(folder, "~").replaceAll(process.cwd(), ".").split("\n");
}

it.each(mistakes)(
  "names line, value, expectation and remedy once for %j",
  async (mistake, place, message) => {
    const [line, ...rest] = await linesFor(mistake);
    expect(rest).toEqual([]);
    const [start, end] = message.split("…");
    expect(line).toMatch(/: got .+, expected .+\. .+[.?]$/s);
    expect(line).toContain(`[periodic-eval] ~/train.yaml:${place}: ${start}`);
    expect(line!.endsWith(end ?? start!)).toBe(true);
  },
);
