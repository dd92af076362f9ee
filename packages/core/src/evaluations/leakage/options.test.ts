import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { measure } from "../../session/window/measure.ts";
import { fakeModel } from "@periodic-eval/testing";
import type { Persona } from "../prompting/personas.ts";
import { leakageEvaluation } from "./evaluation.ts";
import type { GradedLeakageRow } from "./metrics.ts";
import { leakageQuestions } from "./questions.ts";

const pirate: Persona = { id: "pirate", system: { text: "pirate" } };

describe("leakageQuestions", () => {
  it("are eight questions with answers and unique ids", () => {
    expect(new Set(leakageQuestions.map(({ id }) => id)).size).toBe(8);
    expect(
      leakageQuestions.every(({ question, answer }) => question.endsWith("?") && answer.endsWith(".")),
    ).toBe(true);
  });
});

describe("files", () => {
  let folder: string;
  beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "periodic-eval-leakage-"))));
  afterAll(() => rm(folder, { recursive: true }));
  const file = async (name: string, text: string) => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };

  it("accept custom personas and questions", async () => {
    const personas = await file("p.yaml", "pirate: Be a pirate.\nnobody: null\n");
    const questions = await file("q.yaml", '- "Who?"\n- { id: where, question: "Where?", answer: Here. }\n');
    const evaluation = leakageEvaluation({ personas, questions, source: "pirate" });
    const { snapshot, rows } = await measure(evaluation, fakeModel());
    expect(new Set((rows as readonly GradedLeakageRow[]).map(({ item }) => item))).toEqual(
      new Set(["pirate/q1", "pirate/where", "nobody/q1", "nobody/where"]),
    );
    expect(snapshot).toMatchObject({ num_questions: 2, leakage_rates: { pirate: 0, nobody: 0 } });
    const wrong = leakageEvaluation({ personas, questions, source: "pirat" });
    await expect(measure(wrong, fakeModel())).rejects.toThrow('Did you mean "pirate"?');
  });

  it.each([
    ["{}", "an array of questions"],
    ["[]", "an array of questions"],
    ["- 3", /q\.yaml\[0\]: got 3/],
    ["- { answer: x }", /\[0\]\.question: got undefined/],
    ["- { id: a, question: x }\n- { id: a, question: y }", /\[1\]\.id: got "a"/],
    ["- { question: x, anwser: y }", 'Did you mean "answer"?'],
  ])("reject the questions %j", async (text, message) => {
    const questions = await file("q.yaml", text);
    await expect(leakageEvaluation({ questions }).items(fakeModel())).rejects.toThrow(message);
  });
});

describe("options", () => {
  it.each([
    [{ markr: "x" }, 'Did you mean "marker"?'],
    [{ source: "vilain" }, 'Did you mean "villain"?'],
    [{ source: "pirate", personas: [pirate] }, "one of several personas"],
    [{ source: 3 }, "the id of a persona"],
    [{ personas: [] }, "an array of personas"],
    [{ questions: [] }, "an array of questions"],
    [{ completions: 0 }, "a positive integer"],
    [{ seed: 1 }, 'the unknown option "seed"'],
    [{ stripThinking: "no" }, "leakage options.stripThinking: got"],
    [{ chatTemplate: { kwargs: 3 } }, "leakage options.chatTemplate.kwargs: got 3"],
    [{ chatTemplate: { kwarg: {} } }, 'Did you mean "kwargs"?'],
    [{ sampling: { temperature: -1 } }, "leakage options.sampling.temperature: got -1"],
    [{ sampling: { topP: 0 } }, "leakage options.sampling.topP: got 0"],
    [{ sampling: { maxTokens: 3 } }, 'Did you mean "maxNewTokens"?'],
    [{ sampling: { stop: [""] } }, 'sampling.stop[0]: got "", expected a non-empty string'],
  ])("reject %j", (given, message) => {
    expect(() => leakageEvaluation(given as never)).toThrow(message);
  });

  it("pass sampling options to the model", async () => {
    const drawn: unknown[] = [];
    const model = fakeModel({ reply: (_, { seed: _seed, ...sampling }) => (drawn.push(sampling), "") });
    await measure(leakageEvaluation({ personas: [pirate], completions: 1, sampling: { topP: 0.95 } }), model);
    expect(drawn[0]).toEqual({ maxNewTokens: 256, temperature: 1, topP: 0.95 });
  });
});
