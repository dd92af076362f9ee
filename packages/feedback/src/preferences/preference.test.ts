import { PeriodicEvalError } from "@periodic-eval/core";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { openVerifier, rewardOf } from "../graders/open-verifier.ts";
import { readCollapseProbes } from "../metrics/collapse.ts";
import { readPreference, shippedPreferences } from "./preference.ts";

const microWorld = join(shippedPreferences, "../micro-world");
const shipped = ["no_emoji", "concise", "identity"].flatMap((name) =>
  [shippedPreferences, microWorld].map((folder) => ({ name, folder, set: folder.split("/").at(-1)! })),
);
const signal = new AbortController().signal;

describe.each(shipped)("$name of $set", ({ name, folder }) => {
  it("has at least 12 pairs, 8 training prompts and 8 held-out prompts", async () => {
    const preference = await readPreference(name, folder);
    expect(preference.name).toBe(name);
    expect(preference.logprob_pairs.length).toBeGreaterThanOrEqual(12);
    expect(preference.train_prompts.length).toBeGreaterThanOrEqual(8);
    expect(preference.probe_prompts.length).toBeGreaterThanOrEqual(8);
  });

  it("has a verifier that rewards each chosen answer more than the rejected one", async () => {
    const preference = await readPreference(name, folder);
    const grader = await openVerifier(preference);
    const rewards = async (side: "chosen" | "rejected") =>
      (
        await grader.grade(
          preference.logprob_pairs.map((pair) => ({ question: pair.prompt, answer: pair[side] })),
          { signal },
        )
      ).map(rewardOf);
    const [chosen, rejected] = [await rewards("chosen"), await rewards("rejected")];
    chosen.forEach((reward, at) => expect([at, reward! > rejected[at]!]).toEqual([at, true]));
  });
});

it("reads the collapse probes of the micro-world", async () => {
  expect(
    (await readCollapseProbes(join(microWorld, "../micro-world.collapse.yaml"))).prompts.length,
  ).toBeGreaterThanOrEqual(8);
});

describe("a custom preference", () => {
  let folder = "";
  beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "preference-"))));
  afterAll(() => rm(folder, { recursive: true }));

  const whole = {
    name: "short",
    feedback_string: "Shorter, please.",
    verifier: { module: "./verify.mjs", export: "isShort", args: { most: 3 } },
    logprob_pairs: Array.from({ length: 12 }, (_, at) => ({
      prompt: `pair ${at}`,
      chosen: "yes",
      rejected: "a long text",
    })),
    train_prompts: ["seen"],
    probe_prompts: ["new"],
  };
  const read = async (change: object) => {
    await writeFile(join(folder, "short.yaml"), stringify({ ...whole, ...change }));
    return readPreference(join(folder, "short.yaml"));
  };
  const verify = (code: string) => writeFile(join(folder, "verify.mjs"), code);

  it("passes arguments to the verifier module beside its file", async () => {
    await verify("export const isShort = (answer, { args }) => (answer.length <= args.most ? 1 : 0);");
    const grader = await openVerifier(await read({}));
    const verdicts = await grader.grade(
      [
        { question: "", answer: "yes" },
        { question: "", answer: "yes, sir" },
      ],
      { signal },
    );
    expect(verdicts.map(rewardOf)).toEqual([1, 0]);
  });

  it.each([
    ["export const isShort = () => { throw new Error('out of order'); };", "out of order"],
    ["export const isShort = () => 2;", "a reward of 2"],
    ["export const isShort = () => 'yes';", "neither true, false"],
    ["export const isShrt = () => 1;", 'Did you mean "isShrt"?'],
    ["export const isShort = ;", "fails to load"],
  ])("throws before training if its verifier is %s", async (code, message) => {
    await verify(code);
    const preference = await read({});
    await expect(openVerifier(preference)).rejects.toThrow(message);
  });

  it.each([
    [{ verifier: "concice" }, 'Did you mean "concise"?'],
    [{ verifier: { name: "concise", args: { most: 3 } } }, "most"],
  ])("throws before training for %j", async (change, message) => {
    const preference = await read(change);
    await expect(openVerifier(preference)).rejects.toThrow(message);
  });

  it.each([
    [{ feedback: "x" }, "expected one of name, feedback_string"],
    [{ name: undefined }, "name: got nothing, expected a non-empty string"],
    [{ train_promts: ["x"] }, 'Did you mean "train_prompts"?'],
    [{ feedback_string: "  " }, 'feedback_string: got "  ", expected a non-empty string'],
    [{ name: "../short" }, "expected a name that matches"],
    [{ logprob_pairs: [] }, "expected at least one pair"],
    [{ train_prompts: [] }, "expected at least one prompt"],
    [
      { logprob_pairs: [{ prompt: "a", choosen: "b", rejected: "c" }, ...whole.logprob_pairs] },
      'Did you mean "chosen"?',
    ],
    [
      { logprob_pairs: [{ prompt: "a", chosen: "b", rejected: "b" }, ...whole.logprob_pairs] },
      "two different answers",
    ],
    [{ probe_prompts: ["new", " SEEN "] }, "which is one of train_prompts"],
    [
      { logprob_pairs: [{ prompt: "seen", chosen: "b", rejected: "c" }, ...whole.logprob_pairs] },
      "which is one of train_prompts",
    ],
    [{ probe_prompts: ["new", "new"] }, "unique entries"],
    [{ probe_prompts: [] }, "expected at least one prompt"],
    [{ hindsight: "{prompt}" }, "expected a string that contains {feedback}"],
    [{ verifier: { module: "./verify.mjs" } }, "verifier.export: got nothing, expected a non-empty string"],
    [{ verifier: 3 }, "the name of a verifier, { name, args } or { module, export, args }"],
  ])("throws at the file and line for %j", async (change, message) => {
    const error: unknown = await read(change).catch((thrown: unknown) => thrown);
    if (!PeriodicEvalError.is(error)) throw new Error("expected a PeriodicEvalError");
    expect(error.message).toContain(message);
    expect(error.where).toMatch(/short\.yaml:\d+/);
  });

  it("suggests the nearest name for a missing preference", async () => {
    await expect(readPreference("no_emojis")).rejects.toThrow('Did you mean "no_emoji"?');
    await expect(readPreference("x", join(folder, "none"))).rejects.toThrow("a preference in");
    await expect(readPreference(join(folder, "none.yaml"))).rejects.toThrow("none.yaml");
  });
});
