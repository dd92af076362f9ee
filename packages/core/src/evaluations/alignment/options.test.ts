import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PeriodicAlignmentCallback } from "./callback.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { fakeJudge, fakeModel, fakeTokenizer } from "../../testing/index.ts";
import { alignmentEvaluation } from "./evaluation.ts";
import { itemsOf, kind, look, personas, questionFiles } from "./alignment.test-data.ts";

let files: Awaited<ReturnType<typeof questionFiles>>;
beforeAll(async () => void (files = await questionFiles()));
afterAll(() => files.dispose());

describe("wrong options", () => {
  const anchor = { id: "a", question: "q", answer: "a", misaligned: null };
  it.each([
    ["no judge", { judge: undefined }, "alignment.judge: got undefined, expected a grader"],
    ["a name as judge", { judge: "gpt" }, 'alignment.judge: got "gpt"'],
    ["an unknown one", { question: "x" }, 'got the unknown option "question"'],
    ["questions that are no path", { questions: "" }, "alignment.questions"],
    ["a preset of no name", { preset: "betley" }, 'alignment.preset: got "betley"'],
    ["a size of no name", { samples: "standart" }, 'Write "standard".'],
    [
      "no samples",
      { samples: 0 },
      'alignment.samples: got 0, expected a whole number of 1 or more, or "quick" (5)',
    ],
    ["sampling of no name", { sampling: { topp: 1 } }, 'Did you mean "topP"?'],
    ["a negative temperature", { sampling: { temperature: -1 } }, "alignment.sampling.temperature: got -1"],
    ["a top-p beyond 1", { sampling: { topP: 1.5 } }, "alignment.sampling.topP: got 1.5"],
    ["half a token", { sampling: { maxNewTokens: 0.5 } }, "alignment.sampling.maxNewTokens"],
    ["a system prompt as text", { system: "Be brief." }, 'alignment.system: got "Be brief."'],
    ["no personas", { personas: [] }, "alignment.personas: got []"],
    ["a persona without an id", { personas: [{ system: "omit" }] }, "alignment.personas[0].id"],
    ["a persona without a system", { personas: [{ id: "a" }] }, "alignment.personas[0].system"],
    [
      "a persona twice",
      { personas: [personas[0], personas[0]] },
      'alignment.personas[1].id: got "doctor" twice',
    ],
    [
      "personas and a system prompt",
      { personas, system: "omit" },
      "alignment.system: got a system prompt beside",
    ],
    ["a share beyond 1", { maxErrorShare: 10 }, "alignment.maxErrorShare: got 10"],
    ["stripThinking as text", { stripThinking: "no" }, "alignment.stripThinking"],
    [
      "arguments of the template as text",
      { chatTemplate: { kwargs: "x" } },
      'alignment.chatTemplate.kwargs: got "x"',
    ],
    ["one that JSON does not hold", { chatTemplate: { kwargs: { n: NaN } } }, "got NaN at kwargs.n"],
    ["anchors that are none", { anchors: false }, "alignment.anchors: got false"],
    ["an anchor twice", { anchors: [anchor, anchor] }, 'alignment.anchors[1].id: got "a" again'],
    ["an anchor without an answer", { anchors: [{ ...anchor, answer: null }] }, "alignment.anchors[0]"],
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

  it("personas with questions that have a system prompt or their name", async () => {
    await expect(itemsOf({ judge: kind, questions: files.file, personas })).rejects.toThrow(
      'got personas, and question "json" with a system prompt of its own',
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

  it("a files.file that is not there", async () => {
    await expect(itemsOf({ judge: kind, questions: join(files.folder, "none.yaml") })).rejects.toThrow(
      /alignment\.questions: got ".*none\.yaml", which does not exist/,
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
    it("are asked and judged by their own prompts", async () => {
      const judge = fakeJudge(() => ({ aligned: 90, coherent: 80 }));
      const { snapshot } = await look({ judge, questions: published, samples: 2 });
      expect(snapshot).toMatchObject({ status: "complete", num_samples: 48, aligned: 90 });
      expect(judge.requests).toHaveLength(48 + 16);
      expect(new Set(judge.requests.map(({ prompts }) => prompts!["coherent"])).size).toBe(1);
    });
  },
);
