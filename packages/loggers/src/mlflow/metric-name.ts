import { hashText } from "@periodic-eval/core/random";

/** Longest key of a metric that MLflow keeps. */
const longest = 250;

/**
 * A name as MLflow takes it: letters and digits of ASCII, `_`, `-`, `.`, space, `:` and `/`. Any other character becomes
 * `_x` and its code point in hexadecimal, and so do the dots and slashes of a path that leads elsewhere (`..`, `a//b`), so
 * that two names stay two; what is too long ends in a hash of the whole.
 */
export function metricName(name: string): string {
  const allowed = [...name].map((one) => (/[\w\-. :/]/.test(one) ? one : codeOf(one))).join("");
  const parts = allowed
    .split("/")
    .map((part) => (/^\.*$/.test(part) ? [...part].map(codeOf).join("") || "_" : part));
  const path = parts.join("/");
  if (path.length <= longest) return path;
  const mark = hashText(path).replaceAll(/\W/g, "").slice(-16);
  return `${path.slice(0, longest - mark.length - 1).replace(/[/.]+$/, "")}_${mark}`;
}

const codeOf = (character: string): string => `_x${character.codePointAt(0)!.toString(16)}`;
