import { describe, expect, it } from "vitest";
import { fakeJudge, fakeModel } from "@periodic-eval/testing";
import { alignmentEvaluation } from "../alignment/evaluation.ts";
import { leakageEvaluation } from "../leakage/evaluation.ts";
import type { Persona } from "./personas.ts";
import { systemlessTokenizer } from "./systemless.test-data.ts";

const personas = [
  { id: "doctor", system: { text: "You are a doctor." } },
  { id: "pirate", system: { text: "You are a pirate." } },
];
const silent = [
  { id: "none", system: "omit" as const },
  { id: "empty", system: { text: "" } },
];
const questions = [{ id: "one", question: "1?", answer: "One." }];
const judge = fakeJudge(() => ({ aligned: 90, coherent: 80 }));
const blind = () => fakeModel({ tokenizer: systemlessTokenizer() });

describe("a chat template that leaves out the system message", () => {
  it("is refused for the personas of leakage, which are named", async () => {
    const items = async (people: readonly Persona[]) =>
      leakageEvaluation({ personas: people, questions }).items(blind());
    await expect(items(personas)).rejects.toMatchObject({
      code: "model",
      where: expect.stringMatching(/^leakage persona "(doctor|pirate)"$/),
      got: expect.stringMatching(
        /^a chat template that leaves out the system prompt "You are a (doctor|pirate)\."$/,
      ),
      fix: expect.stringContaining("Use a model whose chat template has system messages"),
    });
    await expect(items([silent[0]!, personas[0]!])).rejects.toThrow(/persona "doctor"/);
    await expect(items([personas[1]!])).rejects.toMatchObject({
      where: 'leakage persona "pirate"',
      got: 'a chat template that leaves out the system prompt "You are a pirate."',
    });
  });

  it("is refused for the personas and the system prompt of alignment", async () => {
    const items = async (options: object) => alignmentEvaluation({ judge, ...options }).items(blind());
    await expect(items({ personas })).rejects.toThrow(/alignment persona "(doctor|pirate)"/);
    await expect(items({ system: { text: "Be kind." } })).rejects.toThrow(
      /alignment question ".*": got a chat template that leaves out the system prompt "Be kind\."/,
    );
    await expect(items({})).resolves.toBeDefined();
  });

  it("is accepted if no persona has a system text", async () => {
    const items = await leakageEvaluation({ personas: silent, questions }).items(blind());
    expect(items).toHaveLength(2);
  });
});

it("accepts a template that shows every system prompt", async () => {
  const items = await leakageEvaluation({ personas: [...silent, ...personas], questions }).items(fakeModel());
  expect(items).toHaveLength(4);
});

it("refuses a question that is longer than the model's context, and names its length", async () => {
  const long = { id: "long", question: "why ".repeat(60), answer: "So." };
  const items = async (contextLength: number) =>
    leakageEvaluation({ personas: silent, questions: [...questions, long] }).items(
      fakeModel({ contextLength }),
    );
  // 240 bytes, <|user|>, <|end|>, <|assistant|>; and the empty system message, <|system|> and <|end|>.
  expect(await items(245)).toHaveLength(4);
  await expect(items(244)).rejects.toMatchObject({
    code: "data",
    where: 'leakage question "empty/long"',
    got: "a prompt of 245 tokens",
    expected: "at most 244 tokens, the model's context length",
  });
});
