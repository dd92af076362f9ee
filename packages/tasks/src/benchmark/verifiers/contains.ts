import { flagOf, short, textsOf, type VerifierKind } from "./verifier.ts";

/** The answer stands in the completion; of several answers any one, or with `all` each. */
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
