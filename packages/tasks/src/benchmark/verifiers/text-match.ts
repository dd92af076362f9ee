import {
  extractor,
  flagOf,
  nothingExtracted,
  patternOf,
  verifierError,
  short,
  textsOf,
  type VerifierKind,
} from "./verifier.ts";

/** Passes if the completion equals the answer, or one of several; whitespace at its ends does not count. */
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
      throw verifierError(
        "answer",
        empty,
        "more than punctuation, because ignore_punctuation is true",
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

/** Passes if the completion contains the answer; of several answers any one, or with `all` each. */
export const contains: VerifierKind = {
  version: "1",
  args: ["all", "ignore_case"],
  open({ answer, args }) {
    const [wantsAll, ignoresCase] = [flagOf(args, "all"), flagOf(args, "ignore_case")];
    const plain = (text: string) => (ignoresCase ? text.toLowerCase() : text);
    const wanted = textsOf(answer);
    return (completion) => {
      const said = plain(completion);
      const missing = wanted.filter((text) => !said.includes(plain(text)));
      const passes = wantsAll ? missing.length === 0 : missing.length < wanted.length;
      return passes ? null : `without ${missing.map(short).join(wantsAll ? " and " : " or ")}`;
    };
  },
};

/** Passes if the answer, a JavaScript pattern, matches anywhere in the completion; `^` and `$` anchor it. */
export const regexMatch: VerifierKind = {
  version: "1",
  args: ["flags"],
  open({ answer, args }) {
    const pattern = patternOf("answer", answer, args["flags"]);
    return (completion) => (pattern.test(completion) ? null : `no match of ${short(pattern.source)}`);
  },
};
