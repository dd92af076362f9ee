import type { EvaluableModel, Tokenizer } from "@periodic-eval/core";
import { fakeModel, fakeTokenizer } from "@periodic-eval/core/testing";
import { expect, it } from "vitest";
import { encodingEvaluation } from "../families/encoding.ts";
import { multipleChoiceEvaluation } from "../families/multiple-choice.ts";
import { rolloutEvaluation } from "../families/rollout.ts";
import { auditTask } from "./audit-task.ts";
import { auditText } from "./audit-text.ts";

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

it("shows the first prompt cut at its tokens, and what is scored of each choice", async () => {
  const evaluation = choosing(plain);
  const report = await auditTask(fakeModel(), evaluation);
  const [first] = await evaluation.items(fakeModel());
  expect(report).toMatchObject({ name: "choosing", documents: 2, audited: 2, first: { id: first!.id } });
  expect(report.first.prompt!.map(({ text }) => text).join("")).toBe(first!.document.question);
  const text = auditText(report);
  expect(text).toContain("?│⏎\n│A│:");
  expect(text).toContain(`choice   │${[...first!.choices[0]!].join("│")}`);
});

it("a begin-of-text token that the text writes and the tokenizer adds", async () => {
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

it("completions that nothing stops, of evaluations that write", async () => {
  const none = { ...fakeTokenizer(), stopIds: [] };
  expect(await kindsOf(none, writing(false))).toEqual([["no_stop_token", "warning", null]]);
  expect(await kindsOf(none, choosing(plain, "x "))).not.toContainEqual(["no_stop_token", "warning", null]);
  // The template ends turns with <|end|> (257).
  const other = { ...fakeTokenizer(), stopIds: [256] };
  expect(await kindsOf(other, writing(true))).toEqual([["no_stop_token", "warning", null]]);
  expect(await kindsOf(other, writing(false))).toEqual([]);
  const report = await auditTask(withTokenizer(other), writing(true));
  expect(report.findings[0]!.message).toContain(
    '"<|end|>" (257), and completions stop only at "<|begin|>" (256)',
  );
});

it("a system prompt that the template adds", async () => {
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

it("choices whose first tokens are the same: a warning where they are labels", async () => {
  // In a chat "A" and "B" are 65 and 66, "Ax" and "Ay" both begin with 65.
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

it("prompts that the template fails on", async () => {
  const tokenizer = fakeTokenizer({ failsOn: (messages) => messages[0]!.content.startsWith("2") });
  const report = await auditTask(withTokenizer(tokenizer), writing(true));
  expect(report.findings).toMatchObject([
    {
      kind: "template_failure",
      documents: 1,
      message: expect.stringContaining("the template raised an exception"),
    },
  ]);
  expect(auditText(report)).toContain("warning: template_failure (1 of 2)");
});

it("refuses what it cannot look at", async () => {
  const message = async (run: Promise<unknown>) =>
    run.then(
      () => "",
      (error: Error) => error.message,
    );
  const { tokenizer: _, ...blind } = fakeModel();
  expect(await message(auditTask(blind, writing(false)))).toMatch(
    /auditTask model: got the model "fake", which shows no/,
  );
  const encoding = encodingEvaluation({ name: "encoding", documents, text: ({ question }) => question });
  expect(await message(auditTask(fakeModel(), encoding))).toMatch(/"encoding", which tells no prompts/);
  expect(await message(auditTask(fakeModel(), writing(false), { documents: 0 }))).toMatch(/documents: got 0/);
});
