import "@tensorflow/tfjs";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DPOTrainer } from "../dpo/dpo-trainer.ts";
import { checkPipeline, runPipeline } from "../pipeline/run-pipeline.ts";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { SDPOTrainer } from "../sdpo/sdpo-trainer.ts";
import { tinyLM } from "../testing/tiny-lm.ts";
import { preferences, rows, temporaryFolder, tokenizer } from "../testing/tiny-run.ts";

/** What is said of a trainer with these options in place of right ones. */
async function refused(
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

describe.each(["SFTTrainer", "DPOTrainer", "SDPOTrainer"] as const)("%s without TypeScript", (trainer) => {
  const aModel = "expected a language model that can be trained (TrainableLM). Give what loadCausalLM";
  const aTokenizer = "expected a tokenizer with encode, decode and render. Give what loadTokenizer";
  const wrong: [object, string][] = [
    [{ model: undefined }, `${trainer} model: got nothing, ${aModel}`],
    [{ model: null }, `${trainer} model: got null, ${aModel}`],
    [{ model: "smollm2" }, `${trainer} model: got "smollm2", ${aModel}`],
    [{ model: Promise.resolve({}) }, `${trainer} model: got a promise, ${aModel}`],
    [{ model: { predict: () => {} } }, `${trainer} model: got an object of predict, ${aModel}`],
    [{ model: () => {} }, `${trainer} model: got a function, ${aModel}`],
    [{ tokenizer: undefined }, `${trainer} tokenizer: got nothing, ${aTokenizer}`],
    [{ tokenizer: "gpt2" }, `${trainer} tokenizer: got "gpt2", ${aTokenizer}`],
    [{ tokenizer: Promise.resolve({}) }, `${trainer} tokenizer: got a promise, ${aTokenizer}`],
    [{ tokenizer: { encode() {} } }, `${trainer} tokenizer: got an object of encode, ${aTokenizer}`],
    [{ callbacks: {} }, `${trainer} callbacks: got an empty object, expected a list of objects.`],
    [{ callbacks: [{ id: "a" }, undefined] }, `${trainer} callbacks[1]: got nothing, expected an object.`],
    [{ loggers: "console" }, `${trainer} loggers: got "console", expected a list of objects.`],
    [{ guards: [null] }, `${trainer} guards[0]: got null, expected an object.`],
    [{ runDir: undefined }, `${trainer} runDir: got undefined, expected the path of a folder`],
    [{ runDir: "" }, `${trainer} runDir: got "", expected the path of a folder`],
  ];
  // Trained batch by batch, without callbacks, and without a folder where nothing is saved.
  const own = (option: object) =>
    trainer !== "SDPOTrainer" ||
    !("callbacks" in option || "guards" in option || ("runDir" in option && option.runDir === undefined));
  it.each(wrong.filter(([option]) => own(option)))("says what is wrong with %o", async (options, message) => {
    expect(await refused(trainer, options)).toContain(`[periodic-eval] ${message}`);
  });

  it("takes no file for the folder of a run, nor a folder below one", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "run");
    writeFileSync(file, "mine");
    expect(await refused(trainer, { runDir: file })).toContain(
      `${trainer} runDir: got ${file}, which is a file, expected the path of a folder, or of one that can be made.`,
    );
    expect(await refused(trainer, { runDir: join(file, "a/b") })).toContain(
      `below the file ${file}, expected`,
    );
    expect(await refused(trainer, { runDir: join(folder, "a/b") })).toBe("nothing");
    expect(readdirSync(folder)).toEqual(["run"]);
  });
});

it("a pipeline has a phase or more, each an object; a callback that is added is one too", async () => {
  const model = tinyLM({ vocabSize: tokenizer.vocabSize });
  const options = { model, tokenizer, runDir: await temporaryFolder() };
  await expect(runPipeline([], options)).rejects.toThrow(
    "pipeline phases: got an empty list, expected a phase",
  );
  await expect(runPipeline([undefined as never], options)).rejects.toThrow("pipeline phases[0]: got nothing");
  await expect(runPipeline("sft" as never, options)).rejects.toThrow(
    'pipeline phases: got "sft", expected a list',
  );
  const trainer = new SFTTrainer({ ...options, dataset: rows(4) });
  expect(() => trainer.addCallback(undefined as never)).toThrow("SFTTrainer addCallback[0]: got nothing");
  model.dispose();
});

it("a pipeline is checked with a model that has no weights, and trained with none", async () => {
  const outline = { vocabSize: tokenizer.vocabSize, contextLength: 64 };
  const phases = [{ phase: "sft", dataset: rows(4) }];
  const options = { tokenizer, runDir: await temporaryFolder() };
  expect(() => checkPipeline(phases, { ...options, model: outline })).not.toThrow();
  await expect(runPipeline(phases, { ...options, model: outline as never })).rejects.toThrow(
    "SFTTrainer model: got a model without logits, expected a language model that can be trained",
  );
});
