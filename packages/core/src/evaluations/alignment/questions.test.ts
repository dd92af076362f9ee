import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { judgeGrader } from "../../grading/judge/judge-grader.ts";
import { fakeJudge, fakeModel } from "@periodic-eval/testing";
import { itemsOf, kind, measureAlignment, personas } from "./alignment.test-data.ts";
import { alignmentEvaluation } from "./evaluation.ts";
import { betley2025Questions, isPublishedQuestions, readAlignmentQuestions } from "@periodic-eval/data";
import { authorsFile, serveQuestions } from "../../../../data/src/questions/published-questions.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { errorOf } from "../../../../testing/src/error-of.test-data.ts";

const authors = authorsFile();
let github: Awaited<ReturnType<typeof serveQuestions>>;
let cache = "";
beforeEach(async () => {
  github = await serveQuestions(authors ?? "");
  cache = temporaryFolder();
  vi.stubEnv("HF_HUB_CACHE", cache);
  vi.stubEnv("HF_HUB_OFFLINE", "");
  vi.stubEnv("GITHUB_RAW_ENDPOINT", github.url);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await github.close();
});

describe("questions", () => {
  it("are our own eight without the option, and make no request", async () => {
    expect(await itemsOf({ judge: kind })).toHaveLength(8);
    expect(github.requests).toEqual([]);
  });

  it("betley2025 are refused offline before they were downloaded, at the option and with the remedy", async () => {
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    const error = await errorOf(itemsOf({ judge: kind, questions: "betley2025" }));
    expect(error).toMatchObject({ code: "data", where: "alignment options.questions" });
    expect(error.got).toContain("HF_HUB_OFFLINE, but betley2025 is not in the cache");
    expect(error.fix).toContain("by hand and name its path instead of betley2025");
    expect(github.requests).toEqual([]);
  });

  it("betley2025 with another content are refused, with both hashes", async () => {
    await github.close();
    github = await serveQuestions("- {id: a, paraphrases: [x]}\n");
    vi.stubEnv("GITHUB_RAW_ENDPOINT", github.url);
    const error = await errorOf(itemsOf({ judge: kind, questions: "betley2025" }));
    expect(error.expected).toContain(betley2025Questions.sha256);
    expect(error.got).toMatch(/ with 28 bytes and the SHA-256 [0-9a-f]{64}$/);
  });

  it("with further judge prompts are graded by aligned and coherent, with one warning", async () => {
    const warnings = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const file = join(cache, "questions.json");
    const prompts = { aligned: "A {answer}", coherent: "C {answer}" };
    const questions = ["a", "b"].map((id) => ({
      id,
      paraphrases: ["x"],
      judge_prompts: { ...prompts, polite: "P {answer}" },
    }));
    writeFileSync(file, JSON.stringify(questions));
    const judge = { ...kind, promptNames: ["aligned", "coherent"] };
    const evaluation = alignmentEvaluation({ judge, questions: file });
    for (const _ of [1, 2]) await evaluation.items(fakeModel());
    expect(Object.values((evaluation.provenance!() as { judge_prompts: object }).judge_prompts)).toEqual([
      prompts,
    ]);
    expect(warnings.mock.calls.flat()).toEqual([
      expect.stringContaining("fields judge_prompts.polite are not used"),
    ]);
    warnings.mockRestore();
  });

  it.each(["betley", "Betley2025", "configs/betley_2025"])(
    "that are missing (%s) suggest betley2025",
    async (path) => {
      const error = await errorOf(itemsOf({ judge: kind, questions: path }));
      expect(error.got).toBe(`"${path}", which does not exist`);
      expect(error.fix).toMatch(/^Did you mean "betley2025"/);
      expect(isPublishedQuestions(path)).toBe(false);
    },
  );
});

describe.skipIf(authors === null)('questions: "betley2025" (skipped where ../shared is absent)', () => {
  it("are the authors' 24 questions with their system prompts, paraphrases and judge prompts", async () => {
    const { questions, provenance } = await readAlignmentQuestions("betley2025", "questions");
    expect(questions).toHaveLength(24);
    expect(questions.filter(({ system }) => system !== null).map(({ id }) => id)).toEqual(
      questions.slice(0, 8).map(({ id }) => `${id}_json`),
    );
    expect(
      questions.slice(16).every(({ paraphrases: [text] }) => text!.includes("Fill the following template")),
    ).toBe(true);
    const { repository, commit, path, sha256 } = betley2025Questions;
    expect(provenance).toEqual({ questions: "betley2025", repository, commit, path, file_sha256: sha256 });
    vi.stubEnv("HF_HUB_OFFLINE", "1");
    expect((await readAlignmentQuestions("betley2025", "questions")).questions).toEqual(questions);
    expect(github.requests).toHaveLength(1);
  });

  it("are sampled and judged as published, and the snapshot says so", async () => {
    const judge = fakeJudge(() => ({ aligned: 90, coherent: 80 }));
    const { snapshot, rows } = await measureAlignment({
      judge,
      questions: "betley2025",
      samples: 2,
      system: { text: "Be brief." },
    });
    const { judge_prompts: prompts, ...provenance } = snapshot.provenance.evaluation as {
      readonly judge_prompts: Readonly<Record<string, Readonly<Record<string, string>>>>;
    };
    expect(provenance).toMatchObject({
      questions: "betley2025",
      commit: betley2025Questions.commit,
      file_sha256: betley2025Questions.sha256,
      preset: "betley2025",
      sampling: { temperature: 1, topP: 1, maxNewTokens: 600 },
    });
    const [[name, own]] = Object.entries(prompts) as [[string, Readonly<Record<string, string>>]];
    expect(own["aligned"]).toContain("Say CODE if the model's answer is python code");
    expect(own["coherent"]).toContain("Don't say anything else, just the number.");
    expect(rows.every(({ judgePrompts }) => judgePrompts === name)).toBe(true);
    // 48 completions and the anchors are all graded with the authors' prompts.
    expect(judge.requests).toHaveLength(48 + 16);
    expect(judge.requests.every((request) => request.prompts!["aligned"] === own["aligned"])).toBe(true);
  });

  it("keep a question's own system prompt, and use the option for the others", async () => {
    const items = await itemsOf({ judge: kind, questions: "betley2025", system: { text: "Be brief." } });
    const systemOf = (id: string) => {
      const { prompt } = items.find((one) => one.id === id)!;
      return "messages" in prompt ? prompt.system : null;
    };
    expect(systemOf("quick_buck")).toEqual({ text: "Be brief." });
    expect(systemOf("quick_buck_json")).toEqual({
      text: expect.stringMatching(/^Your answers must always be a valid JSON object/) as string,
    });
  });

  it("need a judge that follows the prompts, and no personas", async () => {
    const options = { questions: "betley2025" };
    const error = await errorOf(
      alignmentEvaluation({ ...options, judge: await judgeGrader({ model: fakeModel() }) }).items(
        fakeModel(),
      ),
    );
    expect(error).toMatchObject({ code: "config", where: 'judge "fake"' });
    expect(error.fix).toContain("judge_method: logprob");
    await itemsOf({ ...options, judge: await judgeGrader({ model: fakeModel(), method: "logprob" }) });
    expect(await errorOf(itemsOf({ ...options, judge: kind, personas }))).toMatchObject({
      code: "config",
      path: ["personas"],
    });
  });
});
