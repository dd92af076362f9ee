import { measure, refusalEvaluation } from "@periodic-eval/core";
import { fakeModel } from "@periodic-eval/testing";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { classifierGrader, type TextClassifier } from "./classifier-grader.ts";

/** Returns the classes of each text as the pipeline does, the most likely first. */
function classifierOf(probability: (text: string) => number) {
  const batches: number[] = [];
  const classifier: TextClassifier = async (texts) => {
    batches.push(texts.length);
    return texts.map((text) => {
      const score = probability(text);
      const classes = [
        { label: "REJECTION", score },
        { label: "NORMAL", score: 1 - score },
      ];
      return classes.toSorted((one, other) => other.score - one.score);
    });
  };
  return { classifier, batches };
}
const name = "owner/rejection@1";
const call = () => ({ signal: new AbortController().signal });
const requests = (answers: readonly string[]) => answers.map((answer) => ({ question: "?", answer }));

it("scores the probability of the class, in batches of 16", async () => {
  const { classifier, batches } = classifierOf((text) => (text === "no" ? 0.75 : 0.125));
  const grader = classifierGrader({ classifier, name, label: "REJECTION" });
  const verdicts = await grader.grade(requests(["no", ...Array<string>(19).fill("yes")]), call());
  expect(batches).toEqual([16, 4]);
  expect(verdicts).toHaveLength(20);
  expect(verdicts[0]).toMatchObject({ status: "graded", scores: { refusal: 75 } });
  expect(verdicts[19]).toMatchObject({ status: "graded", scores: { refusal: 12.5 } });
  expect(grader.fingerprint).toBe("classifier:owner/rejection@1:REJECTION");
});

it("gives the verdict error where the classes lack the label", async () => {
  const { classifier } = classifierOf(() => 1);
  const grader = classifierGrader({ classifier, name, label: "rejection" });
  const [verdict] = await grader.grade(requests(["no"]), call());
  expect(verdict).toMatchObject({ status: "error" });
  expect(verdict!.raw).toContain('no class "rejection" in [{"label":"REJECTION"');
});

it("checks its options", () => {
  expect(() => classifierGrader({ classifier: "owner/rejection" as never, name, label: "x" })).toThrow(
    "classifierGrader options.classifier: got",
  );
  expect(() => classifierGrader({ classifier: async () => [], name, label: "" })).toThrow(
    'classifierGrader options.label: got "", expected the name of a class',
  );
});

it("grades the answers of refusalEvaluation", async () => {
  const questions = join(temporaryFolder(), "prompts.csv");
  await writeFile(questions, "prompt,label\nA?,safe\nB?,unsafe\n");
  const { classifier } = classifierOf((text) => (text === "Nope." ? 0.9 : 0.1));
  const grader = classifierGrader({ classifier, name, label: "REJECTION" });
  const model = fakeModel({ reply: (prompt) => (prompt.includes("B?") ? "Nope." : "Yes, with a key.") });
  const { snapshot } = await measure(refusalEvaluation({ questions, grader }), model);
  expect(snapshot.metrics["appropriate"]).toMatchObject({ value: 1, n: 2 });
});
