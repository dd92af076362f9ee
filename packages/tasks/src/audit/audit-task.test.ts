import type { EvaluableModel, Tokenizer } from "@periodic-eval/core";
import { fakeModel, fakeTokenizer } from "@periodic-eval/core/testing";
import { expect, it } from "vitest";
import { encodingEvaluation } from "../families/encoding.ts";
import { multipleChoiceEvaluation } from "../families/multiple-choice.ts";
import { rolloutEvaluation } from "../families/rollout.ts";
import { auditTask } from "./audit-task.ts";
import { auditText } from "./audit-text.ts";
import { shownTokens } from "./shown-tokens.ts";

const documents = [
  { id: "a", question: "1?\nA:", choices: ["A", "B"] },
  { id: "b", question: "2?\nA:", choices: ["Ax", "Ay"] },
];
type Document = (typeof documents)[number];

const choosing = (
  prompt: (document: Document) => string | { messages: { role: string; content: string }[] },
  delimiter = " ",
) =>
  multipleChoiceEvaluation({
    name: "choosing",
    documents,
    subsample: { n: 2, seed: 3 },
    prompt,
    choices: ({ choices }) => choices,
    gold: () => 0,
    delimiter,
  });
const writing = (chat: boolean) =>
  rolloutEvaluation({
    name: "writing",
    documents,
    maxNewTokens: 4,
    prompt: ({ question }) => (chat ? { messages: [{ role: "user", content: question }] } : question),
    check: () => true,
  });
const chat = ({ question }: Document) => ({ messages: [{ role: "user", content: question }] });
const plain = ({ question }: Document) => question;
const withTokenizer = (tokenizer: Tokenizer): EvaluableModel => fakeModel({ tokenizer });
const kindsOf = async (tokenizer: Tokenizer, evaluation: Parameters<typeof auditTask>[1]) =>
  (await auditTask(withTokenizer(tokenizer), evaluation)).findings.map(
    ({ kind, severity, documents: some }) => [kind, severity, some],
  );

it("shows the first prompts split into tokens, and the scored tokens of each choice", async () => {
  const evaluation = choosing(plain);
  const report = await auditTask(fakeModel(), evaluation, { shown: 1 });
  const [first] = await evaluation.items(fakeModel());
  expect(report).toMatchObject({ name: "choosing", documents: 2, audited: 2, generation: null });
  expect(report.shown).toMatchObject([{ id: first!.id, gold: [0] }]);
  expect(report.shown[0]!.prompt!.map(({ text }) => text).join("")).toBe(first!.document.question);
  const text = auditText(report);
  expect(text).toContain("?│⏎\n│A│:\n✓ 1 │");
  const [right, wrong] = first!.choices;
  expect(text).toContain(`✓ 1 │ │${[...right!].join("│")}\n  2 │ │${[...wrong!].join("│")}\n`);
  expect((await auditTask(fakeModel(), evaluation)).shown).toHaveLength(2);
  expect((await auditTask(fakeModel(), evaluation, { shown: 0 })).shown).toEqual([]);
  expect((await auditTask(fakeModel(), evaluation, { documents: 1 })).shown).toHaveLength(1);
});

it("reports the generation settings and the tokens that end a completion", async () => {
  const report = await auditTask(fakeModel(), writing(true));
  expect(report.generation).toMatchObject({
    maxNewTokens: 4,
    temperature: 0,
    stop: [],
    stopTokens: [{ id: 257, text: "<|end|>", isSpecial: true }],
  });
  expect(auditText(report)).toContain(
    "then the model generates at most 4 tokens, greedily, until <|end|> (257)\n",
  );
  const painted = auditText(report, { ...identity, special: (text) => `{${text}}` });
  expect(painted).toContain("{<|user|>}│1│?│⏎\n│A│:│{<|end|>}│{<|assistant|>}\n");
});

const identity = {
  title: String,
  dim: String,
  special: String,
  right: String,
  warning: String,
  note: String,
  good: String,
};

it("decodes each token in the context of the previous one, and shows part of a character as its id", () => {
  // Like SentencePiece, this tokenizer strips the leading space of the first decoded token.
  const words = ["<s>", " the", " colour"];
  const decode = (ids: readonly number[], { specialTokens = true } = {}) =>
    ids
      .filter((id) => specialTokens || id > 0)
      .map((id) => words[id]!)
      .join("")
      .replace(/^ /, "");
  const stripping = { ...fakeTokenizer(), decode };
  const texts = (ids: readonly number[], before: number | null = null) =>
    shownTokens(stripping, ids, before).map(({ text, isSpecial }) => (isSpecial ? `!${text}` : text));
  expect(texts([0, 1, 2])).toEqual(["!<s>", " the", " colour"]);
  expect(texts([1, 2])).toEqual(["the", " colour"]);
  expect(texts([2], 1)).toEqual([" colour"]);
  // é is encoded as C3 A9, the bytes 195 and 169.
  expect(shownTokens(fakeTokenizer(), [97, 195, 169]).map(({ text }) => text)).toEqual([
    "a",
    "[195]",
    "[169]",
  ]);
});

it("reports documents whose prompt and choices or new tokens exceed the context length", async () => {
  // "1?\nA:" and " A" are 5 + 2 tokens, " Ax" one more.
  const kinds = async (contextLength: number, evaluation: Parameters<typeof auditTask>[1]) =>
    (await auditTask(fakeModel({ contextLength }), evaluation)).findings
      .filter(({ kind }) => kind === "prompt_too_long")
      .map(({ documents: some, message }) => [some, message]);
  expect(await kinds(8, choosing(plain))).toEqual([]);
  expect(await kinds(7, choosing(plain))).toEqual([
    [1, 'document "b" has 8 tokens, and the context length is 7'],
  ]);
  const long = rolloutEvaluation({
    name: "long",
    documents: [...documents, { id: "c", question: "13?\nA:", choices: [] }],
    maxNewTokens: 4,
    prompt: plain,
    check: () => true,
  });
  expect(await kinds(10, long)).toEqual([]);
  expect(await kinds(9, long)).toEqual([
    [1, 'document "c" has 6 tokens and 4 new ones, and the context length is 9'],
  ]);
});

it("reports a begin-of-text token that both the prompt and the tokenizer add", async () => {
  const bos = fakeTokenizer({ beginOfText: true });
  const twice = writing(false);
  expect(await kindsOf(bos, twice)).toEqual([]);
  const written = choosing(
    ({ question, choices }) => `${choices[0] === "A" ? "<|begin|>" : ""}${question}`,
    "",
  );
  expect((await kindsOf(bos, written))[0]).toEqual(["double_bos", "warning", 1]);
  expect((await kindsOf(fakeTokenizer(), written)).map(([kind]) => kind)).not.toContain("double_bos");
});

it("reports generation without a matching stop token", async () => {
  const none = { ...fakeTokenizer(), stopIds: [] };
  expect(await kindsOf(none, writing(false))).toEqual([["no_stop_token", "warning", null]]);
  expect(await kindsOf(none, choosing(plain, "x "))).not.toContainEqual(["no_stop_token", "warning", null]);
  // The template ends turns with <|end|> (257).
  const other = { ...fakeTokenizer(), stopIds: [256] };
  expect(await kindsOf(other, writing(true))).toEqual([["no_stop_token", "warning", null]]);
  expect(await kindsOf(other, writing(false))).toEqual([]);
  const report = await auditTask(withTokenizer(other), writing(true));
  expect(report.findings[0]!.message).toContain(
    '"<|end|>" (257), but completions stop only at "<|begin|>" (256)',
  );
});

it("reports a system prompt that the template adds", async () => {
  const injecting = fakeTokenizer({ defaultSystem: "Be kind." });
  const report = await auditTask(withTokenizer(injecting), writing(true));
  expect(report.findings).toMatchObject([{ kind: "injected_system_prompt", documents: 2 }]);
  expect(report.findings[0]!.message).toContain("<|system|>Be kind.<|end|><|user|>");
  expect(await kindsOf(fakeTokenizer(), writing(true))).toEqual([]);
  const given = rolloutEvaluation({
    name: "given",
    documents,
    maxNewTokens: 4,
    prompt: (document) => ({ ...chat(document), system: { text: "Mine." } }),
    check: () => true,
  });
  expect(await kindsOf(injecting, given)).toEqual([]);
});

it("reports choices that start with the same token, as a warning if they are labels", async () => {
  // In a chat, "A" and "B" have the ids 65 and 66; "Ax" and "Ay" both start with 65.
  expect(await kindsOf(fakeTokenizer(), choosing(chat, ""))).toEqual([
    ["first_token_collision", "warning", 1],
  ]);
  const long = multipleChoiceEvaluation({
    name: "long",
    documents,
    prompt: plain,
    choices: ({ choices }) => choices.map((choice) => `${choice} and more`),
    gold: () => 0,
  });
  expect(await kindsOf(fakeTokenizer(), long)).toEqual([["first_token_collision", "note", 2]]);
  const equal = multipleChoiceEvaluation({
    name: "equal",
    documents,
    prompt: plain,
    choices: () => ["x", "x"],
    gold: () => 0,
  });
  expect((await kindsOf(fakeTokenizer(), equal))[0]).toEqual(["equal_choices", "warning", 2]);
});

it("reports prompts on which the template throws", async () => {
  const tokenizer = fakeTokenizer({ failsOn: (messages) => messages[0]!.content.startsWith("2") });
  const report = await auditTask(withTokenizer(tokenizer), writing(true));
  expect(report.findings).toMatchObject([
    {
      kind: "template_failure",
      documents: 1,
      message: expect.stringContaining("the template raised an exception"),
    },
  ]);
  expect(auditText(report)).toContain("▲ warning template_failure (1 of 2)");
});

it("rejects models and evaluations that it cannot audit", async () => {
  const message = async (run: Promise<unknown>) =>
    run.then(
      () => "",
      (error: Error) => error.message,
    );
  const { tokenizer: _, ...blind } = fakeModel();
  expect(await message(auditTask(blind, writing(false)))).toMatch(
    /auditTask model: got the model "fake", which has no/,
  );
  const encoding = encodingEvaluation({ name: "encoding", documents, text: ({ question }) => question });
  expect(await message(auditTask(fakeModel(), encoding))).toMatch(/"encoding", which has no prompts/);
  expect(await message(auditTask(fakeModel(), writing(false), { documents: 0 }))).toMatch(/documents: got 0/);
  expect(await message(auditTask(fakeModel(), writing(false), { shown: -1 }))).toMatch(/shown: got -1/);
});
