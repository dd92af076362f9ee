import { hashText } from "@periodic-eval/core/random";

/** Maximum length of a metric key in MLflow. */
const maxLength = 250;

/**
 * Converts a name to one that MLflow accepts: ASCII letters and digits, `_`, `-`, `.`, space, `:` and `/`. Any other character
 * becomes `_x` and its hexadecimal code point, and so do dots and slashes that would change the path (`..`, `a//b`), so
 * different names stay different. A name that is too long ends in a hash of the whole name.
 */
export function metricName(name: string): string {
  const allowed = [...name].map((one) => (/[\w\-. :/]/.test(one) ? one : codeOf(one))).join("");
  const parts = allowed
    .split("/")
    .map((part) => (/^\.*$/.test(part) ? [...part].map(codeOf).join("") || "_" : part));
  const path = parts.join("/");
  if (path.length <= maxLength) return path;
  const mark = hashText(path).replaceAll(/\W/g, "").slice(-16);
  return `${path.slice(0, maxLength - mark.length - 1).replace(/[/.]+$/, "")}_${mark}`;
}

const codeOf = (character: string): string => `_x${character.codePointAt(0)!.toString(16)}`;
