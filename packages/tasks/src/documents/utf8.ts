import { isUtf8 } from "node:buffer";
import { badData } from "./rows.ts";

/**
 * The text of a file's bytes, without a byte-order mark.
 *
 * @param path of the file, for errors
 * @throws PeriodicEvalError `data` with file and line of the first bytes that are no UTF-8.
 */
export function utf8Text(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    const fix = "Convert the file to UTF-8.";
    throw badData(`${path}:${badLine(bytes)}`, "bytes that are no UTF-8", "a text file in UTF-8", fix, cause);
  }
}

/** From 1; a line end is never part of a longer sign, so that lines can be read each by itself. */
function badLine(bytes: Uint8Array): number {
  let line = 1;
  for (let start = 0; ; line++) {
    const end = bytes.indexOf(0x0a, start);
    const own = bytes.subarray(start, end === -1 ? undefined : end);
    if (end === -1 || !isUtf8(own)) return line;
    start = end + 1;
  }
}
