import { createReadStream } from "node:fs";

/** A line of a file without its line feed, or how many bytes one has that is longer than it may be. */
export type Line = { readonly bytes: Buffer } | { readonly tooLong: number };

const lineFeed = 10;

/**
 * The lines of a file in their order. Nothing but a line feed ends one: U+2028, which JSON may hold as it is, does not. Of
 * a longer line than `maxBytes` no more than these are ever in memory.
 */
export async function* readLines(path: string, maxBytes: number): AsyncGenerator<Line, void> {
  let parts: Buffer[] = [];
  let size = 0;
  const take = (part: Buffer) => {
    size += part.length;
    if (size <= maxBytes) parts.push(part);
    else parts = [];
  };
  const end = (): Line => {
    const line = size <= maxBytes ? { bytes: Buffer.concat(parts) } : { tooLong: size };
    parts = [];
    size = 0;
    return line;
  };
  for await (const chunk of createReadStream(path, { highWaterMark: 2 ** 20 }) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let to = chunk.indexOf(lineFeed); to >= 0; to = chunk.indexOf(lineFeed, from)) {
      take(chunk.subarray(from, to));
      yield end();
      from = to + 1;
    }
    take(chunk.subarray(from));
  }
  if (size > 0) yield end();
}
