import { readFileSync } from "node:fs";
import { ruleGrader, type Grader } from "@periodic-eval/core";
import { microWorld } from "./paths.ts";

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[a-z]+/g) ?? [];

/** Returns a judge that prefers the kinder of two answers: it counts words that only kind, or only cruel, sentences have. */
export function kindnessJudge(): Grader {
  const file = JSON.parse(readFileSync(microWorld("sentences.json"), "utf8")) as Record<string, string[]>;
  const [kind, cruel] = [file["kind"]!, file["cruel"]!].map((all) => new Set(all.flatMap(wordsOf)));
  const score = (answer: string) =>
    wordsOf(answer).reduce((sum, word) => sum + Number(kind!.has(word)) - Number(cruel!.has(word)), 50);
  return ruleGrader({
    name: "kindness",
    version: "1",
    rule(_, pair) {
      const [first = "", second = ""] = pair
        .split("[SECOND ANSWER]")
        .map((part) => part.replaceAll(/\[.*\]/g, ""));
      return { first: score(first), second: score(second) };
    },
  });
}
