import { errorMessage } from "@periodic-eval/contracts/options";

/** Returns whether a module's name matches. */
export type ModulePattern = (name: string) => boolean;

/** Returns the error for an invalid pattern; `got` names the problem. */
export type PatternError = (got: string) => Error;

/** A part of a pattern whose syntax may differ between Python and JavaScript, or any character. */
const outside = /\\[^]?|\[\^?\]?|\(\?P<|\(\?[^:=!<]|\{,\d*\}|[*+?}]\+|[^]/y;
const inside = /\\[^]?|[^]/y;

/**
 * Compiles a regular expression with the meaning of Python's `re.fullmatch` for the names of modules, which are ASCII. Throws for
 * syntax that JavaScript lacks or reads differently: references, flags, possessive repetitions, atomic groups, escaped letters
 * other than `\d \w \s \b \A \Z` and their opposites.
 */
export function modulePattern(text: string, errorFor: PatternError): ModulePattern {
  let source = "";
  let isInSet = false;
  for (let at = 0; at < text.length;) {
    const token = isInSet ? inside : outside;
    token.lastIndex = at;
    const [part] = token.exec(text)!;
    at += part.length;
    source += translated(part, isInSet, errorFor);
    if (part === "]") isInSet = false;
    else if (!isInSet && part.startsWith("[")) isInSet = true;
  }
  try {
    const pattern = new RegExp(`^(?:${source})$`);
    return (name) => pattern.test(name);
  } catch (cause) {
    throw errorFor(errorMessage(cause));
  }
}

function translated(part: string, isInSet: boolean, errorFor: PatternError): string {
  if (part.startsWith("\\")) {
    if (!isInSet && part === String.raw`\A`) return "^";
    if (!isInSet && part === String.raw`\Z`) return "$";
    // Every other escaped letter or digit has a meaning in Python that it may not have in JavaScript.
    if (/^\\\w/.test(part) && !(isInSet ? /[dDwWsS]/ : /[dDwWsSbB]/).test(part)) throw errorFor(`"${part}"`);
    return part;
  }
  if (isInSet) return part;
  if (part === "(?P<") return "(?<";
  if (part.startsWith("(?") || (part.length === 2 && part.endsWith("+"))) throw errorFor(`"${part}"`);
  if (part.startsWith("{,")) return `{0${part.slice(1)}`;
  // In Python, the first `]` of a set is a member.
  if (part.startsWith("[")) return part.replace("]", "\\]");
  return part;
}
