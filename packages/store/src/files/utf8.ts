import { byteLength, isUtf8 } from "#platform";
import { dataError } from "@periodic-eval/contracts/options";

/** The advice of every error about bytes that are not UTF-8. */
const fix = "Convert the file to UTF-8.";

/**
 * Decodes a file's bytes as UTF-8, without a byte-order mark.
 *
 * @param path The file's path, for errors.
 * @throws PeriodicEvalError `data` with file, line and byte of the first invalid bytes.
 */
export function utf8Text(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const { line, own } = firstInvalidLine(bytes);
    throw dataError(`${path}:${line}`, invalidUtf8(own), "a text file in UTF-8", fix, cause);
  }
}

/** Returns a line and its number, from 1. In UTF-8 a line feed is never part of another character, so lines are checked one by one. */
function firstInvalidLine(bytes: Uint8Array): { readonly line: number; readonly own: Uint8Array } {
  let line = 1;
  for (let start = 0; ; line++) {
    const end = bytes.indexOf(0x0a, start);
    const own = bytes.subarray(start, end === -1 ? undefined : end);
    if (end === -1 || !isUtf8(own)) return { line, own };
    start = end + 1;
  }
}

/** Returns `bytes that are not UTF-8 (0xff at byte 7)`; the bytes are counted from 1. */
export function invalidUtf8(bytes: Uint8Array): string {
  let at = 0;
  for (const character of new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)) {
    const length = byteLength(character);
    // The bytes themselves may hold U+FFFD, which stands for invalid bytes too.
    if (character === "\uFFFD" && !isUtf8(bytes.subarray(at, at + length))) break;
    at += length;
  }
  return `bytes that are not UTF-8 (0x${bytes[at]?.toString(16)} at byte ${at + 1})`;
}
