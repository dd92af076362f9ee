import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PeriodicAlignmentCallback } from "../../config/callbacks.ts";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { fakeJudge, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { alignmentEvaluation } from "./evaluation.ts";
import { itemsOf, kind, measureAlignment, personas, questionFiles } from "./alignment.test-data.ts";

let files: Awaited<ReturnType<typeof questionFiles>>;
beforeAll(async () => void (files = await questionFiles()));
afterAll(() => files.dispose());

it.each([
  ["a name", "openai:gpt", 'got "openai:gpt"'],
  ["nothing", undefined, "got undefined"],
  ["a grader without a name", { ...kind, name: undefined }, "got {"],
])("rejects, before step 1, a function that opens %s instead of a judge", async (_, opened, message) => {
  const evaluation = alignmentEvaluation({ judge: () => opened as never });
  await expect(evaluation.items(fakeModel())).rejects.toThrow(message);
  await expect(evaluation.items(fakeModel())).rejects.toThrow("the result of the function `judge`");
});

describe("alignmentEvaluation rejects", () => {
  const anchor = { id: "a", question: "q", answer: "a", misaligned: null };
  it.each([
    ["no judge", { judge: undefined }, "alignment options.judge: got undefined, expected a grader"],
    ["a name as judge", { judge: "gpt" }, 'alignment options.judge: got "gpt"'],
    [
      "a judge without a fingerprint",
      { judge: { ...kind, fingerprint: undefined } },
      "alignment options.judge: got",
    ],
    ["an unknown option", { question: "x" }, 'got the unknown option "question"'],
    ["an empty path of questions", { questions: "" }, "alignment options.questions"],
    ["an unknown preset", { preset: "betley" }, 'alignment options.preset: got "betley"'],
    ["an unknown sample size", { samples: "standart" }, '"quick" or "standard" or "paper"'],
    ["zero samples", { samples: 0 }, "alignment options.samples: got 0, expected a positive integer"],
    ["an unknown sampling option", { sampling: { topp: 1 } }, 'Did you mean "topP"?'],
    [
      "a negative temperature",
      { sampling: { temperature: -1 } },
      "alignment options.sampling.temperature: got -1",
    ],
    ["a top-p above 1", { sampling: { topP: 1.5 } }, "alignment options.sampling.topP: got 1.5"],
    [
      "a fractional number of tokens",
      { sampling: { maxNewTokens: 0.5 } },
      "alignment options.sampling.maxNewTokens",
    ],
    [
      "a system prompt that is a string",
      { system: "Be brief." },
      'alignment options.system: got "Be brief."',
    ],
    ["an empty list of personas", { personas: [] }, "alignment options.personas: got []"],
    ["a persona without an id", { personas: [{ system: "omit" }] }, "alignment options.personas[0].id"],
    ["a persona without a system", { personas: [{ id: "a" }] }, "alignment options.personas[0].system"],
    [
      "a repeated persona",
      { personas: [personas[0], personas[0]] },
      'alignment options.personas[1].id: got "doctor" twice',
    ],
    [
      "personas and a system prompt",
      { personas, system: "omit" },
      "alignment options.system: got a system prompt and personas",
    ],
    ["a share above 1", { maxErrorShare: 10 }, "alignment options.maxErrorShare: got 10"],
    ["stripThinking as a string", { stripThinking: "no" }, "alignment options.stripThinking"],
    [
      "template variables as a string",
      { chatTemplate: { kwargs: "x" } },
      'alignment options.chatTemplate.kwargs: got "x"',
    ],
    [
      "a template variable that JSON cannot represent",
      { chatTemplate: { kwargs: { n: NaN } } },
      "alignment options.chatTemplate.kwargs",
    ],
    ["anchors that are no array", { anchors: false }, "alignment options.anchors: got false"],
    ["a repeated anchor", { anchors: [anchor, anchor] }, 'alignment options.anchors[1].id: got "a" twice'],
    [
      "an anchor without an answer",
      { anchors: [{ ...anchor, answer: null }] },
      "alignment options.anchors[0]",
    ],
  ])("%s", (_, options, message) => {
    let error: unknown;
    try {
      alignmentEvaluation({ judge: kind, ...options } as never);
    } catch (thrown) {
      error = thrown;
    }
    expect(PeriodicEvalError.is(error, "config")).toBe(true);
    expect((error as Error).message).toContain(message);
    expect(() => new PeriodicAlignmentCallback({ judge: kind, ...options } as never)).toThrow();
  });

  it("personas together with questions that have a system prompt or the same id", async () => {
    await expect(itemsOf({ judge: kind, questions: files.file, personas })).rejects.toThrow(
      'got personas, and the question "json" with a system prompt',
    );
    const tea = [{ id: "short_on_rent", system: "omit" as const }];
    await expect(itemsOf({ judge: kind, personas: tea })).rejects.toThrow(
      'got the id "short_on_rent", which a question has',
    );
  });

  it("a chat template that fails on a question, before step 1", async () => {
    const failsOn = (messages: readonly { readonly content: string }[]) =>
      messages.some(({ content }) => content === "Coffee?");
    const model = fakeModel({ tokenizer: fakeTokenizer({ failsOn }) });
    const error: unknown = await Promise.resolve(
      alignmentEvaluation({ judge: kind, questions: files.file }).items(model),
    ).catch((thrown: unknown) => thrown);
    expect(PeriodicEvalError.is(error, "model")).toBe(true);
    expect((error as Error).message).toContain('alignment question "json": got a chat template that fails');
  });

  it("a missing file", async () => {
    await expect(itemsOf({ judge: kind, questions: join(files.folder, "none.yaml") })).rejects.toThrow(
      /alignment options\.questions: got ".*none\.yaml", which does not exist/,
    );
  });
});

// Beside the repository, never in it: see ../shared/data/README.md.
const published = join(
  import.meta.dirname,
  "../../../../../../shared/data/emergent_misalignment/first_plot_questions.yaml",
);
describe.skipIf(!existsSync(published))(
  "Betley et al.'s questions (skipped where ../shared is absent)",
  () => {
    it("are judged with their own prompts", async () => {
      const judge = fakeJudge(() => ({ aligned: 90, coherent: 80 }));
      const { snapshot } = await measureAlignment({ judge, questions: published, samples: 2 });
      expect(snapshot).toMatchObject({ status: "complete", num_samples: 48, aligned: 90 });
      expect(judge.requests).toHaveLength(48 + 16);
      expect(new Set(judge.requests.map(({ prompts }) => prompts!["coherent"])).size).toBe(1);
    });
  },
);
