import { patternOf, short, type VerifierKind } from "./verifier.ts";

/** The answer is a pattern of JavaScript that matches anywhere in the completion; `^` and `$` make it match all of it. */
export const regexMatch: VerifierKind = {
  version: "1",
  args: ["flags"],
  open({ answer, args }) {
    const pattern = patternOf("answer", answer, args["flags"]);
    return (completion) => (pattern.test(completion) ? null : `no match of ${short(pattern.source)}`);
  },
};
