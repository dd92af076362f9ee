import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadHarnessConfig } from "../config/load-config.ts";
import { fakeEngine } from "../engine/fake-engine.test-data.ts";
import type { FeedbackEngine } from "../engine/types.ts";
import { writeHydraFiles } from "../preferences/hydra-files.test-data.ts";
import { runHarness } from "./run-harness.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lengths-"));
  await writeHydraFiles(folder);
});
afterEach(() => rm(folder, { recursive: true }));

/** The fake engine with a context length. Its tokens are bytes, and 3 special ones around a user turn. */
function engineOf(contextLength: number, hindsight?: string) {
  const updates: string[] = [];
  const { open, ...rest } = fakeEngine((moment) => void updates.push(moment));
  const engine: FeedbackEngine = {
    ...rest,
    async open(request) {
      const model = await open(request);
      return {
        ...model,
        ...(hindsight !== undefined && { hindsight }),
        evaluable: { ...model.evaluable, contextLength },
      };
    },
  };
  return { engine, updates };
}

async function run(contextLength: number, overrides: readonly string[] = [], hindsight?: string) {
  const config = await loadHarnessConfig({
    overrides: [
      `output_dir=${join(folder, "run", String(contextLength))}`,
      `preferences_dir=${folder}`,
      "preferences=[no_emoji,concise]",
      "metrics=[logprob]",
      "num_steps=1",
      ...overrides,
    ],
  });
  const { engine, updates } = engineOf(contextLength, hindsight);
  const error: unknown = await runHarness(config, { engine, onWarning() {} }).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (error !== null && !PeriodicEvalError.is(error, "config")) throw error;
  return { error, updates };
}

const lineOf = async (text: string) =>
  (await readFile(join(folder, "concise.yaml"), "utf8"))
    .split("\n")
    .findIndex((line) => line.includes(text)) + 1;

describe("a run with texts that the model cannot read", () => {
  it("names file, line, tokens and context of the longest answer before the first preference is trained", async () => {
    const { error, updates } = await run(146);
    const line = await lineOf("negative_response");
    expect(error).toMatchObject({
      where: `${join(folder, "concise.yaml")}:${line} logprob_pairs.0.negative_response`,
      // Bytes of the answer.
      got: expect.stringMatching(/^the answer "A bridge carries a road over.*…" of 147 tokens$/) as string,
      expected: "at most 146 tokens, the context length of fake",
      fix: expect.stringContaining("147 tokens or more") as string,
    });
    expect(updates).toEqual(["opened"]);
    expect(existsSync(join(folder, "run/146/no_emoji/metadata.json"))).toBe(false);
  });

  it("trains if the longest text has as many tokens as the context", async () => {
    expect((await run(147)).error).toBeNull();
  });

  it("checks prompts, and the feedback turn with one token of the answer", async () => {
    const prompts = ["metrics=[compliance]", "preferences=[concise]"];
    // "How does a clock work?" is the longest prompt: 22 bytes and 3 special tokens.
    expect((await run(24, prompts)).error).toMatchObject({
      where: expect.stringMatching(/concise\.yaml:\d+ probe_prompts\.1$/) as string,
      got: expect.stringContaining("of 25 tokens") as string,
    });
    expect((await run(25, prompts)).error).toBeNull();
    // 22 bytes, a space, 38 bytes of feedback, 3 special tokens and one of the answer.
    expect((await run(64, prompts, "{prompt} {feedback}")).error).toMatchObject({
      where: expect.stringMatching(/concise\.yaml:\d+ feedback_string$/) as string,
      got: expect.stringMatching(/and the feedback\) of 65 tokens$/) as string,
    });
    // The other prompt is 5 bytes shorter.
    expect((await run(59, prompts, "{prompt} {feedback}")).error).toMatchObject({
      got: expect.stringContaining("of 65 tokens (1 more") as string,
    });
    expect((await run(65, prompts, "{prompt} {feedback}")).error).toBeNull();
  });

  it.each([
    ["general", "{ questions: [{ prompt: PROMPT, says: a }] }", "questions[0].prompt"],
    ["collapse", "{ text: a b, prompts: [PROMPT] }", "prompts[0]"],
  ])("checks the prompts of %s in their file, and the default ones", async (metric, content, place) => {
    const metrics = ["preferences=[no_emoji]", `metrics=[${metric}]`];
    expect((await run(45, metrics)).error).toMatchObject({
      where: `the default prompts of ${metric}`,
      fix: expect.stringContaining(`set ${metric}_probes to a file`) as string,
    });
    const path = join(folder, "probes.yaml");
    const long = `${"long ".repeat(20)}prompt`;
    await writeFile(
      path,
      content.replace(/(\{ prompt[^}]*\}|(?<=\[)PROMPT)/, (row) => rowsOf(row, long)),
    );
    expect((await run(45, [...metrics, `${metric}_probes=${path}`])).error).toMatchObject({
      where: `${path} ${place}`,
      got: expect.stringContaining("of 109 tokens") as string,
    });
  });
});

/** Repeats a row eight times, the first with the long prompt. */
const rowsOf = (row: string, long: string): string =>
  Array.from({ length: 8 }, (_, at) => row.replace("PROMPT", at === 0 ? long : `prompt ${at}`)).join(", ");
