import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import type { AnyEvaluation } from "@periodic-eval/contracts";
import { fakeJudge, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { countedTokenizer } from "../../../testing/src/evaluation-conformance.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { bulkTokenizer } from "../model/bulk-tokenizer.ts";
import { measure } from "../session/window/measure.ts";
import { alignmentEvaluation } from "./alignment/evaluation.ts";
import { capabilityEvaluation } from "./capability/evaluation.ts";
import { klEvaluation } from "./kl/evaluation.ts";
import { leakageEvaluation } from "./leakage/evaluation.ts";
import { marginEvaluation } from "./margin/evaluation.ts";

const folder = temporaryFolder(afterAll);

/** More questions than the largest batch has. */
const count = 100;
const texts = Array.from({ length: count }, (_, at) => `Question ${at}?`);

const fileOf = async (name: string, text: string) => {
  await writeFile(join(folder, name), text);
  return join(folder, name);
};

const arc = () =>
  fileOf(
    "arc.jsonl",
    texts
      .map((question) => ({ question, choice_labels: ["A", "B"], choices: ["x", "y"], correct_answer: "A" }))
      .map((record) => JSON.stringify(record))
      .join("\n"),
  );
const asked = () =>
  fileOf(
    "asked.yaml",
    JSON.stringify(texts.map((text) => ({ id: text.replace(/\D/g, ""), paraphrases: [text] }))),
  );
const beliefs = () => fileOf("beliefs.json", JSON.stringify({ belief: { affirm: texts, negate: texts } }));
const leakageQuestions = texts.map((question, at) => ({ id: `${at}`, question, answer: "Yes." }));

/** Calls of the tokenizer while items are made, and while they are measured. */
async function callsOf(evaluation: AnyEvaluation) {
  const { tokenizer, calls } = countedTokenizer(bulkTokenizer(fakeTokenizer()));
  const model = { ...fakeModel(), base: fakeModel({ weights: () => "base" }), tokenizer };
  let before: readonly string[] = [];
  const watched: AnyEvaluation = {
    ...evaluation,
    measure(...given) {
      before = calls.splice(0);
      return evaluation.measure(...given);
    },
  };
  const { rows } = await measure(watched, model);
  expect(rows.length).toBeGreaterThanOrEqual(count);
  return [before, calls];
}

it.each<[string, readonly string[], readonly string[], () => AnyEvaluation | Promise<AnyEvaluation>]>([
  // The second call has other system prompts, and shows whether the template drops them.
  [
    "leakage",
    ["render", "render"],
    ["render"],
    () => leakageEvaluation({ questions: leakageQuestions, completions: 1 }),
  ],
  [
    "alignment",
    ["render"],
    ["render"],
    async () =>
      alignmentEvaluation({
        questions: await asked(),
        judge: fakeJudge(() => ({ aligned: 90, coherent: 80 })),
      }),
  ],
  ["letters", ["render"], ["render", "encode"], async () => capabilityEvaluation({ questions: await arc() })],
  // The second call shows once what the tokenizer appends to a text.
  [
    "cloze",
    ["encode", "encode"],
    [],
    async () => capabilityEvaluation({ questions: await arc(), method: "cloze" }),
  ],
  ["margin", [], [], async () => marginEvaluation({ probes: await beliefs() })],
  [
    "kl of margin",
    ["encode", "encode"],
    [],
    async () => klEvaluation({ of: marginEvaluation({ probes: await beliefs() }) }),
  ],
])("%s calls the tokenizer for all of its items at once", async (_, items, measured, make) => {
  expect(await callsOf(await make())).toEqual([items, measured]);
});
