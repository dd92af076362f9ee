import {
  extractor,
  flagOf,
  nothingExtracted,
  refuse,
  short,
  textsOf,
  type VerifierKind,
} from "./verifier.ts";

/** The completion is the answer, or one of several; white space at its ends does not count. */
export const exactMatch: VerifierKind = {
  version: "1",
  args: ["extract", "ignore_case", "ignore_punctuation"],
  open({ answer, args }) {
    const extract = extractor(args);
    const [ignoresCase, ignoresPunctuation] = [
      flagOf(args, "ignore_case"),
      flagOf(args, "ignore_punctuation"),
    ];
    const plain = (text: string) => {
      const cased = ignoresCase ? text.toLowerCase() : text;
      return (ignoresPunctuation ? cased.replaceAll(/\p{P}/gu, "") : cased).trim();
    };
    const right = textsOf(answer);
    const empty = right.find((text) => plain(text) === "");
    if (empty !== undefined)
      throw refuse(
        "answer",
        empty,
        "more than punctuation, where ignore_punctuation is true: nothing is left of it",
        "Leave ignore_punctuation out for this task.",
      );
    const accepted = new Set(right.map(plain));
    return (completion) => {
      const said = extract(completion);
      if (said === null) return nothingExtracted;
      return accepted.has(plain(said)) ? null : `${short(said)} is not ${right.map(short).join(" or ")}`;
    };
  },
};
