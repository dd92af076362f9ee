import { describe, expect, it } from "vitest";
import { answerFilters, isSameAnswer } from "./gsm8k.ts";

const reference = "He has $1,000 + 5.\n#### 1,005";

// lm-evaluation-harness 0.4.13: RegexFilter of gsm8k.yaml's two filters on the text, then exact_match_hf_evaluate of gsm8k's
// keywords, with the reference above.
describe("the filters of gsm8k", () => {
  it.each([
    ["So 5.\n#### 1,005", "1,005", true, "1,005", true],
    ["#### 1005.", "1005.", true, "1005.", true],
    ["#### $1005", "[invalid]", false, "$1005", true],
    ["It is $1,005.00", "[invalid]", false, "$1,005.00", false],
    ["#### 7\n#### 1005", "7", false, "1005", true],
    ["The answer is 1005. Thanks 3", "[invalid]", false, "3", false],
    ["-5 and 4-1005", "[invalid]", false, "-1005", false],
    ["x = .. 1005 ..", "[invalid]", false, "..", false],
    ["####1005", "[invalid]", false, "1005", true],
    ["no number", "[invalid]", false, "[invalid]", false],
    ["", "[invalid]", false, "[invalid]", false],
  ])("%j", (text, strict, isStrict, flexible, isFlexible) => {
    const found = answerFilters["strict-match"](text);
    expect([found, isSameAnswer(found, reference)]).toEqual([strict, isStrict]);
    const last = answerFilters["flexible-extract"](text);
    expect([last, isSameAnswer(last, reference)]).toEqual([flexible, isFlexible]);
  });
});
