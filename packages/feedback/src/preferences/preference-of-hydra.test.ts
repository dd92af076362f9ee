import { PeriodicEvalError } from "@periodic-eval/core";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openVerifier, rewardOf } from "../graders/open-verifier.ts";
import { readPreference } from "./preference.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

/** Returns a file in the form of CLaaS, with one pair. */
const fileOf = (verifier: string, messages = "      - role: user\n        content: Who are you?") => `
name: mine
feedback_string: Your name is Kuro.

verifier:
${verifier}

logprob_pairs:
  - prompt_messages:
${messages}
    positive_response: >-
      I'm Kuro! I am here
      to help.
    negative_response: "I am an assistant that answers. \\U0001F60A"

probe_prompts: [What should I call you?]
`;

async function read(verifier: string, messages?: string) {
  await writeFile(join(folder, "mine.yaml"), fileOf(verifier, messages));
  return readPreference(join(folder, "mine.yaml"));
}

async function refusal(verifier: string, messages?: string): Promise<PeriodicEvalError> {
  const error: unknown = await read(verifier, messages).catch((thrown: unknown) => thrown);
  if (!PeriodicEvalError.is(error, "config")) throw new Error(`no config error: ${String(error)}`);
  return error;
}

describe("readPreference of a Hydra file", () => {
  it.each([
    ["claas.eval.metrics.verifiers.NoEmojiVerifier", "no_emoji", [1, 0]],
    ["claas.eval.verifiers.NoEmojiVerifier", "no_emoji", [1, 0]],
    ["claas.eval.metrics.verifiers.ConciseVerifier", "concise", [1, 1]],
    ["claas.eval.metrics.verifiers.IdentityVerifier", "identity", [1, 0]],
    ["mine.IdentityVerifier", "identity", [1, 0]],
  ])("maps %s onto %s", async (target, name, rewards) => {
    const preference = await read(`  _target_: ${target}`);
    expect(preference.verifier).toMatchObject({ name });
    const grader = await openVerifier(preference);
    const [{ prompt: question, chosen, rejected }] = preference.logprob_pairs as [
      (typeof preference.logprob_pairs)[0],
    ];
    const answers = [chosen, rejected].map((answer) => ({ question, answer }));
    const verdicts = await grader.grade(answers, { signal: new AbortController().signal });
    expect(verdicts.map(rewardOf)).toEqual(rewards);
  });

  it("finds kuro inside words, in any case", async () => {
    const grader = await openVerifier(
      await read("  _target_: claas.eval.metrics.verifiers.IdentityVerifier"),
    );
    const answers = ["Call me KURO-1.", "kurobot at your service", "I am a model."];
    const requests = answers.map((answer) => ({ question: "Who are you?", answer }));
    const verdicts = await grader.grade(requests, { signal: new AbortController().signal });
    expect(verdicts.map(rewardOf)).toEqual([1, 1, 0]);
  });

  it("reads messages and responses as pairs", async () => {
    const { logprob_pairs: pairs } = await read("  _target_: a.ConciseVerifier");
    expect(pairs[0]).toEqual({
      prompt: "Who are you?",
      chosen: "I'm Kuro! I am here to help.",
      rejected: "I am an assistant that answers. 😊",
    });
  });

  it("passes the other keys as arguments, without Hydra's", async () => {
    const { verifier } = await read(
      "  _target_: a.IdentityVerifier\n  _convert_: all\n  _partial_: false\n  says: Wren",
    );
    expect(verifier).toEqual({ name: "identity", args: { says: "Wren" } });
    await expect(openVerifier(await read("  _target_: a.ConciseVerifier\n  most: 3"))).rejects.toThrow(
      "most",
    );
  });

  it.each([
    ["claas.eval.metrics.verifiers.NoEmojisVerifier", 'Did you mean "NoEmojiVerifier"?'],
    ["mine.PoliteVerifier", "{ module: ./verify.mjs, export: name }"],
    ["NoEmojiVerifier.call", "{ module:"],
    ["3", "{ module:"],
  ])("rejects %s at its line, and names the known classes", async (target, fix) => {
    const error = await refusal(`  _target_: ${target}`);
    expect(error.where).toMatch(/mine\.yaml:6/);
    expect(error.path).toEqual(["verifier", "_target_"]);
    expect(error.expected).toContain("NoEmojiVerifier, ConciseVerifier or IdentityVerifier");
    expect(error.fix).toContain(fix);
  });

  it.each([
    ["      - role: system\n        content: Be brief.", "one message { role: user, content }"],
    [
      "      - role: user\n        content: a\n      - role: user\n        content: b",
      "one message { role: user, content }",
    ],
    ["      []", "one message { role: user, content }"],
  ])("rejects the messages %j at their line", async (messages, expected) => {
    const error = await refusal("  _target_: a.ConciseVerifier", messages);
    expect(error.where).toMatch(/mine\.yaml:\d+/);
    expect([error.path, error.expected]).toEqual([["logprob_pairs", 0, "prompt_messages"], expected]);
  });
});
