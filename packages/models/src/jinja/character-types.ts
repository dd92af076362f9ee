import { characters } from "./text.ts";

/** Characters beyond Nd with Unicode's numeric type Digit, such as ² and ①. */
const digits =
  /[\u00b2\u00b3\u00b9\u1369-\u1371\u19da\u2070\u2074-\u2079\u2080-\u2089\u2460-\u2468\u2474-\u247c\u2488-\u2490\u24ea\u24f5-\u24fd\u24ff\u2776-\u277e\u2780-\u2788\u278a-\u2792\u{10a40}-\u{10a43}\u{10e60}-\u{10e68}\u{11052}-\u{1105a}\u{1f100}-\u{1f10a}]/u;
/** Ideographs with a numeric value. */
const numerals =
  /[\u3405\u3483\u382a\u3b4d\u4e00\u4e03\u4e07\u4e09\u4e5d\u4e8c\u4e94\u4e96\u4ebf\u4ec0\u4edf\u4ee8\u4f0d\u4f70\u5104\u5146\u5169\u516b\u516d\u5341\u5343-\u5345\u534c\u53c1-\u53c4\u56db\u58f1\u58f9\u5e7a\u5efe\u5eff\u5f0c-\u5f0e\u5f10\u62fe\u634c\u67d2\u6f06\u7396\u767e\u8086\u842c\u8cae\u8cb3\u8d30\u9621\u9646\u964c\u9678\u96f6\uf96b\uf973\uf978\uf9b2\uf9d1\uf9d3\uf9fd\u{20001}\u{20064}\u{200e2}\u{20121}\u{2092a}\u{20983}\u{2098c}\u{2099c}\u{20aea}\u{20afd}\u{20b19}\u{22390}\u{22998}\u{23b1b}\u{2626d}\u{2f890}]/u;

const every = (pattern: RegExp) => {
  const all = new RegExp(`^(?:${pattern.source})+$`, "u");
  return (text: string): boolean => all.test(text);
};

/** Python's `str.isalpha` and the like for each character of a text that is not empty. */
export const isAll = {
  alphabetic: every(/\p{L}/u),
  decimal: every(/\p{Nd}/u),
  digit: every(new RegExp(`\\p{Nd}|${digits.source}`, "u")),
  numeric: every(new RegExp(`\\p{N}|${numerals.source}`, "u")),
  alphanumeric: every(/\p{L}|\p{N}/u),
  printable: every(/ |[^\p{C}\p{Z}]/u),
};

/** Python's `str.islower` and `str.isupper`. */
export function isCased(text: string, wanted: "lower" | "upper"): boolean {
  const [right, wrong] =
    wanted === "lower"
      ? [/\p{Lowercase}/u, /\p{Uppercase}|\p{Lt}/u]
      : [/\p{Uppercase}/u, /\p{Lowercase}|\p{Lt}/u];
  return right.test(text) && !wrong.test(text);
}

/** Python's `str.istitle`. */
export function isTitle(text: string): boolean {
  let isAfterCased = false;
  let hasCased = false;
  for (const character of characters(text)) {
    const isUpper = /\p{Uppercase}|\p{Lt}/u.test(character);
    const isLower = /\p{Lowercase}/u.test(character);
    if ((isUpper && isAfterCased) || (isLower && !isAfterCased)) return false;
    isAfterCased = isUpper || isLower;
    hasCased ||= isAfterCased;
  }
  return hasCased;
}

/** Python's `str.isidentifier`. */
export function isIdentifier(text: string): boolean {
  return /^[\p{XID_Start}_]\p{XID_Continue}*$/u.test(text);
}
