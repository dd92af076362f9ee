import "@tensorflow/tfjs";
import { describe, expect, it } from "vitest";
import { DPOTrainer } from "../dpo/dpo-trainer.ts";
import { checkPipeline } from "../pipeline/check-pipeline.ts";
import { runPipeline } from "../pipeline/run-pipeline.ts";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { SDPOTrainer } from "../sdpo/sdpo-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.test-data.ts";
import { preferences, rows, temporaryFolder, tokenizer } from "../testing/tiny-run.test-data.ts";

/** Returns the error of a trainer with these options instead of valid ones. */
async function errorOf(
  trainer: "SFTTrainer" | "DPOTrainer" | "SDPOTrainer",
  options: object,
): Promise<string> {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  const base = { model, tokenizer, runDir: await temporaryFolder() };
  try {
    if (trainer === "SFTTrainer") new SFTTrainer({ ...base, dataset: rows(4), ...options });
    else if (trainer === "SDPOTrainer")
      new SDPOTrainer({ ...base, config: { teacher: "current" }, ...options }).dispose();
    else new DPOTrainer({ ...base, dataset: preferences(4), ...options });
    return "nothing";
  } catch (error) {
    return String(error);
  } finally {
    model.dispose();
  }
}

describe.each(["SFTTrainer", "DPOTrainer", "SDPOTrainer"] as const)(
  "the options of %s, without TypeScript",
  (trainer) => {
    const aModel =
      "expected a language model that can be trained (TrainableLM). Pass the awaited result of loadCausalLM";
    const aTokenizer =
      "expected a tokenizer with encode, decode and render. Pass the awaited result of loadTokenizer";
    const wrong: [object, string][] = [
      [{ model: undefined }, `${trainer} options.model: got nothing, ${aModel}`],
      [{ model: null }, `${trainer} options.model: got null, ${aModel}`],
      [{ model: "smollm2" }, `${trainer} options.model: got "smollm2", ${aModel}`],
      [{ model: Promise.resolve({}) }, `${trainer} options.model: got a promise, ${aModel}`],
      [{ model: { predict: () => {} } }, `${trainer} options.model: got an object of predict, ${aModel}`],
      [{ model: () => {} }, `${trainer} options.model: got a function, ${aModel}`],
      [{ tokenizer: undefined }, `${trainer} options.tokenizer: got nothing, ${aTokenizer}`],
      [{ tokenizer: "gpt2" }, `${trainer} options.tokenizer: got "gpt2", ${aTokenizer}`],
      [{ tokenizer: Promise.resolve({}) }, `${trainer} options.tokenizer: got a promise, ${aTokenizer}`],
      [
        { tokenizer: { encode() {} } },
        `${trainer} options.tokenizer: got an object of encode, ${aTokenizer}`,
      ],
      [{ callbacks: {} }, `${trainer} options.callbacks: got {}, expected an array of callbacks.`],
      [
        { callbacks: [{ id: "a" }, undefined] },
        `${trainer} options.callbacks[1]: got undefined, expected an object.`,
      ],
      [{ loggers: "console" }, `${trainer} options.loggers: got "console", expected an array of loggers.`],
      [{ guards: [null] }, `${trainer} options.guards[0]: got null, expected an object.`],
      [{ runDir: undefined }, `${trainer} options.runDir: got undefined, expected the path of a folder`],
      [{ runDir: "" }, `${trainer} options.runDir: got "", expected the path of a folder`],
    ];
    // SDPOTrainer takes no callbacks and guards, and needs no folder unless it saves.
    const own = (option: object) =>
      trainer !== "SDPOTrainer" ||
      !("callbacks" in option || "guards" in option || ("runDir" in option && option.runDir === undefined));
    it.each(wrong.filter(([option]) => own(option)))("throws for %o", async (options, message) => {
      expect(await errorOf(trainer, options)).toContain(`[periodic-eval] ${message}`);
    });
  },
);

it("requires one phase or more in a pipeline, each an object, and an object in addCallback", async () => {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  const options = { model, tokenizer, runDir: await temporaryFolder() };
  await expect(runPipeline([], options)).rejects.toMatchObject({
    where: "pipeline phases",
    got: "an empty array",
    expected: "one phase or more",
  });
  await expect(runPipeline([undefined as never], options)).rejects.toMatchObject({
    where: "pipeline phases[0]",
    got: "nothing",
  });
  await expect(runPipeline("sft" as never, options)).rejects.toMatchObject({
    where: "pipeline phases",
    got: '"sft"',
    expected: "an array of phases",
  });
  const trainer = new SFTTrainer({ ...options, dataset: rows(4) });
  expect(() => trainer.addCallback(undefined as never)).toThrow(
    expect.objectContaining({
      where: "SFTTrainer.addCallback[0]",
      got: "undefined",
    }),
  );
  model.dispose();
});

it("checks a pipeline with a model without weights, but does not train it", async () => {
  const outline = { vocabSize: tokenizer.vocabSize, contextLength: 64 };
  const phases = [{ phase: "sft", dataset: rows(4) }];
  const options = { tokenizer, runDir: await temporaryFolder() };
  expect(() => checkPipeline(phases, { ...options, model: outline })).not.toThrow();
  await expect(runPipeline(phases, { ...options, model: outline as never })).rejects.toMatchObject({
    where: "SFTTrainer options.model",
    got: "a model without logits",
    expected: "a language model that can be trained (TrainableLM)",
  });
});

it("refuses `restore` without conditions, unless the block measures nothing", async () => {
  const model = { vocabSize: tokenizer.vocabSize, contextLength: 64 };
  const options = {
    model,
    tokenizer,
    runDir: await temporaryFolder(),
    config: { restore: "last_clean" } as const,
  };
  const check = (block: object | undefined, stopWhen?: readonly string[]) =>
    checkPipeline([{ phase: "sft", dataset: rows(4), ...(stopWhen && { session: { stopWhen } }) }], {
      ...options,
      ...(block && { periodicEval: block }),
    });
  const refused = expect.objectContaining({ where: "SFT config.restore", code: "config" });
  expect(() => check(undefined)).toThrow(refused);
  expect(() => check({})).toThrow(refused);
  expect(() => check({ stop_when: ["capability worse"] }, [])).toThrow(refused);
  expect(() => check({ stop_when: ["capability worse"] })).not.toThrow();
  expect(() => check({ enabled: false })).not.toThrow();
});
