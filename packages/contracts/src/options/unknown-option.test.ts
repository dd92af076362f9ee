import { expect, it } from "vitest";
import { unknownOption } from "./unknown-option.ts";

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
