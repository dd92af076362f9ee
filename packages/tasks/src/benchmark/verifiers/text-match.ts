import { configError } from "@periodic-eval/contracts/options";
import * as z from "zod";
import {
  extract,
  flag,
  nothingExtracted,
  patternFix,
  patternSchema,
  regExpOf,
  short,
  textsSchema,
  verifierKind,
} from "./verifier.ts";

/** Passes if the completion equals the answer, or one of several; whitespace at its ends does not count. */
export const exactMatch = verifierKind(
  "1",
  { answer: textsSchema, args: { extract, ignore_case: flag, ignore_punctuation: flag } },
  (right, { extract: extracted, ignore_case: ignoresCase, ignore_punctuation: ignoresPunctuation }) => {
    const plain = (text: string) => {
      const cased = ignoresCase ? text.toLowerCase() : text;
      return (ignoresPunctuation ? cased.replaceAll(/\p{P}/gu, "") : cased).trim();
    };
    const empty = right.find((text) => plain(text) === "");
    if (empty !== undefined)
      throw configError({
        where: "answer",
        value: empty,
        expected: "more than punctuation, because ignore_punctuation is true",
        fix: "Leave ignore_punctuation out for this task.",
      });
    const accepted = new Set(right.map(plain));
    return (completion) => {
      const said = extracted(completion);
      if (said === null) return nothingExtracted;
      return accepted.has(plain(said)) ? null : `${short(said)} is not ${right.map(short).join(" or ")}`;
    };
  },
);

/** Passes if the completion contains the answer; of several answers any one, or with `all` each. */
export const contains = verifierKind(
  "1",
  { answer: textsSchema, args: { all: flag, ignore_case: flag } },
  (wanted, { all: wantsAll, ignore_case: ignoresCase }) => {
    const plain = (text: string) => (ignoresCase ? text.toLowerCase() : text);
    return (completion) => {
      const said = plain(completion);
      const missing = wanted.filter((text) => !said.includes(plain(text)));
      const passes = wantsAll ? missing.length === 0 : missing.length < wanted.length;
      return passes ? null : `without ${missing.map(short).join(wantsAll ? " and " : " or ")}`;
    };
  },
);

/** Passes if the answer, a JavaScript pattern, matches anywhere in the completion; `^` and `$` anchor it. */
export const regexMatch = verifierKind(
  "1",
  {
    answer: patternSchema,
    args: {
      flags: z
        .string()
        .regex(/^[imsuv]*$/, "some of i, m, s, u, v")
        .meta({ fix: "Remove other flags, such as g and y." })
        .default(""),
    },
  },
  (source, { flags }) => {
    const pattern = regExpOf(source, flags);
    if (pattern === null)
      throw configError({
        where: "answer",
        value: source,
        expected: `a JavaScript pattern${flags === "" ? "" : ` with the flags ${flags}`}`,
        fix: patternFix,
      });
    return (completion) => (pattern.test(completion) ? null : `no match of ${short(pattern.source)}`);
  },
);
