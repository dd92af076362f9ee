import { expect, it } from "vitest";
import { didYouMean, nearest, unknownOption } from "./nearest.ts";

it("returns the candidate with the fewest typing errors", () => {
  expect(nearest("evry", ["at", "every", "times"])).toBe("every");
  expect(nearest("Unit", ["every", "unit"])).toBe("unit");
  expect(nearest("percents", ["percent", "steps", "epochs"])).toBe("percent");
  // One replaced character instead of two.
  expect(nearest("abc", ["xyc", "abb"])).toBe("abb");
});

it("returns null when no candidate is near", () => {
  expect(nearest("temperature", ["at", "every", "unit"])).toBeNull();
});

it("returns null without candidates", () => {
  expect(nearest("evry", [])).toBeNull();
});

it("suggests the only name that a word abbreviates", () => {
  const known = ["arc_challenge", "arc_easy", "gsm8k"];
  expect(didYouMean("arcc", known)).toBe('Did you mean "arc_challenge"?');
  for (const word of ["arc", "ac", "rcc", "nothing", 3]) expect(didYouMean(word, known)).toBeNull();
});

it("continues a name with another word, rather than replacing many letters", () => {
  const known = ["leakage_source", "leakage_marker_token", "leakage_marker_regex", "budget"];
  expect(nearest("leakage_marker", known)).toBe("leakage_marker_token");
  expect(nearest("subsample", ["samples", "subsampleSeed"])).toBe("subsampleSeed");
  expect(nearest("max", ["min", "maxSteps"])).toBe("min");
});

it("suggests the name with this end, and a name of a phase for an end behind a phase", () => {
  const known = ["capability", "capability.accuracy", "alignment.misaligned", "em/capability.accuracy"];
  expect(didYouMean("accuracy", known)).toBe('Did you mean "capability.accuracy"?');
  expect(didYouMean("acuracy", known)).toBe('Did you mean "capability.accuracy"?');
  expect(didYouMean("em/accuracy", known)).toBe('Did you mean "em/capability.accuracy"?');
  expect(didYouMean("misaligned", known)).toBe('Did you mean "alignment.misaligned"?');
  expect(didYouMean("capabilty.accuracy", known)).toBe('Did you mean "capability.accuracy"?');
});

it("suggests nothing for a name that shares few letters with any", () => {
  const known = ["capability", "capability.accuracy", "alignment.misaligned", "leakage.marker", "kl"];
  for (const name of ["perplexity", "loss", "f1", "margin", "eval/loss", "bleu.score"])
    expect(didYouMean(name, known)).toBeNull();
});

it("suggests nothing for an ending that no name is near, however equal the beginning", () => {
  const known = ["alignment", "alignment.code", "alignment.misaligned", "em/alignment.code", "leakage.rate"];
  for (const name of ["alignment.zzzz", "em/alignment.zzzz", "alignment.perplexity", "misalignment.zzzz"])
    expect(didYouMean(name, known)).toBeNull();
  expect(didYouMean("alignment.coed", known)).toBe('Did you mean "alignment.code"?');
  expect(didYouMean("em/alignmnt.code", known)).toBe('Did you mean "em/alignment.code"?');
});

const many = ["maxSteps", ..."abcdefghijklm"];

it("suggests the nearest option, without a long list of all", () => {
  expect(unknownOption("maxStep", ["maxSteps", "epochs"])).toEqual({
    got: 'the unknown option "maxStep"',
    expected: "one of maxSteps, epochs",
    fix: 'Did you mean "maxSteps"?',
  });
  const { expected, fix } = unknownOption("maxStep", many);
  expect([expected, fix]).toEqual(["one of the 14 known ones", 'Did you mean "maxSteps"?']);
  expect(unknownOption("zebra", many)).toMatchObject({
    expected: `one of ${many.join(", ")}`,
    fix: "Remove it.",
  });
});

it("suggests the map that has the key", () => {
  const elsewhere = ["config.maxSteps", "periodic_eval.questions"];
  expect(unknownOption("maxSteps", ["model"], elsewhere).fix).toBe('Did you mean "config.maxSteps"?');
  expect(unknownOption("question", ["model"], elsewhere).fix).toBe('Did you mean "periodic_eval.questions"?');
  expect(unknownOption("modle", ["model"], elsewhere).fix).toBe('Did you mean "model"?');
});
