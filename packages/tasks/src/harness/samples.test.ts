import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { rolloutEvaluation } from "../families/rollout.ts";
import { folderWith, linesOf, smallRows, writeSmallRows } from "../tasks/small-rows.test-data.ts";
import { tasks, type TaskRegistry } from "../tasks/registry.ts";
import { Evaluator } from "../evaluator/evaluator.ts";
import type { SuiteDefinition } from "../suite/suite-file.ts";

let [root, data]: [string, Readonly<Record<string, string>>] = ["", {}];
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "family-detail-"));
  data = await writeSmallRows(join(root, "data"), ["anatomy"]);
});
afterAll(() => rm(root, { recursive: true }));

interface Sample {
  readonly doc_id: number;
  readonly doc: object;
  readonly target: string;
  readonly arguments: unknown;
  readonly resps: unknown;
  readonly filtered_resps: unknown;
  readonly filter: string;
}

/** Returns the samples of one task, in the order of their file. */
async function samplesOf(
  name: string,
  settings: SuiteDefinition["tasks"][string],
  model: ReturnType<typeof fakeModel>,
  registry: TaskRegistry = tasks,
): Promise<readonly Sample[]> {
  const trainer = { evaluableModel: model, modelFingerprint: () => "w" };
  const suite = { schema_version: 1 as const, name: "one", tasks: { [name]: settings } };
  const options = { name: "run", tasks: registry, suite, results: join(root, name) };
  const { folder } = await Evaluator.fromTrainer(trainer, options).run();
  const files = (await readdir(folder)).filter((file) => file.startsWith("samples_"));
  expect(files).toHaveLength(1);
  const text = await readFile(join(folder, files[0]!), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Sample);
}

it("records each choice with its score, and the document as it was read", async () => {
  const scores: Readonly<Record<string, number>> = { " A": -1, " B": -2.5, " C": -3, " D": -4 };
  const model = fakeModel({ logLikelihood: (_, choice) => scores[choice]! });
  const samples = await samplesOf("mmlu_anatomy", { shots: 0, data: data["mmlu"]! }, model);
  expect(samples.map(({ doc_id: id }) => id).toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3]);
  const second = samples.find(({ doc_id: id }) => id === 1)!;
  const context =
    "The following are multiple choice questions (with answers) about anatomy.\n\n" +
    "What is 1?\nA. a\nB. b\nC. c\nD. d\nAnswer:";
  const scored = ["-1", "-2.5", "-3", "-4"].map((nats) => [
    nats,
    expect.stringMatching(/^(True|False|None)$/),
  ]);
  expect(second).toMatchObject({
    doc: { question: " What is 1? ", choice0: "a", answer: "1" },
    target: "1",
    arguments: {
      gen_args_0: { arg_0: context, arg_1: " A" },
      gen_args_3: { arg_0: context, arg_1: " D" },
    },
    resps: scored.map((one) => [one]),
    filtered_resps: scored,
    filter: "none",
  });
});

it("names the first of several correct choices as the target", async () => {
  const samples = await samplesOf("truthfulqa_mc2", { data: data["truthfulqa"]! }, fakeModel());
  expect(samples.map(({ target }) => target)).toEqual(["0", "0", "0", "0"]);
});

it("records the completion and the answer that each filter extracted", async () => {
  const reply = () => "So.\n#### 3";
  const samples = await samplesOf(
    "gsm8k",
    { shots: 0, limit: 1, data: data["gsm8k"]! },
    fakeModel({ reply }),
  );
  expect(samples.map(({ filter }) => filter)).toEqual(["strict-match", "flexible-extract"]);
  for (const sample of samples)
    expect(sample).toMatchObject({
      doc_id: 0,
      doc: smallRows.gsm8k[0],
      target: smallRows.gsm8k[0]!.answer,
      arguments: {
        gen_args_0: {
          arg_0: "Question: 0 and 1?\nAnswer:",
          arg_1: {
            until: ["Question:", "</s>", "<|im_end|>"],
            max_gen_toks: 256,
            do_sample: false,
            temperature: 0,
          },
        },
      },
      resps: [["So.\n#### 3"]],
      filtered_resps: ["3"],
    });
  const record = { key: 7, prompt: "Say no.", instruction_id_list: ["punctuation:no_comma"], kwargs: [{}] };
  const folder = await folderWith({ "input_data.jsonl": linesOf([record]) });
  const [followed] = await samplesOf("ifeval", { data: folder }, fakeModel({ reply: () => "No." }));
  expect(followed).toMatchObject({
    doc: { key: 7, prompt: "Say no." },
    target: "0",
    resps: [["No."]],
    filtered_resps: ["No."],
    prompt_level_strict_acc: 1,
  });
});

it("records document and completion of a custom rollout, also if the template fails on one", async () => {
  const tokenizer = fakeTokenizer({ failsOn: ([first]) => first!.content === "b" });
  const model = fakeModel({ tokenizer, reply: () => "yes" });
  const own = {
    name: "own",
    version: "1",
    defaultShots: 0,
    open: () =>
      rolloutEvaluation({
        name: "own",
        documents: [
          { id: "x", question: "a" },
          { id: "y", question: "b" },
        ],
        prompt: ({ question }) => ({ messages: [{ role: "user", content: question }] }),
        maxNewTokens: 2,
        check: (_, text) => text === "yes",
      }),
  };
  const samples = await samplesOf("own", {}, model, { own });
  const byDocument = samples.toSorted((a, b) => a.doc_id - b.doc_id);
  expect(byDocument).toMatchObject([
    {
      doc: { question: "a" },
      arguments: { gen_args_0: { arg_0: "<|user|>a<|end|><|assistant|>" } },
      resps: [["yes"]],
    },
    { doc: { question: "b" }, resps: [[""]], accuracy: null },
  ]);
});
