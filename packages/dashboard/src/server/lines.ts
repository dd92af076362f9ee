/** Largest line, in bytes. */
const maxLineBytes = 64 * 2 ** 20;

/** A line without its end, and its position in bytes from the first chunk. */
export interface Line {
  readonly line: string;
  readonly position: number;
}

/**
 * Splits chunks of a file into lines, with the memory of one line.
 *
 * @param file Names the file in errors.
 * @param onChunk Receives each chunk, for a hash of the file.
 * @throws Error for a line of more than 64 MiB.
 */
export async function* linesOf(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  onChunk: (chunk: Uint8Array) => unknown = () => undefined,
): AsyncGenerator<Line, void, void> {
  let rest: Buffer[] = [];
  let [restBytes, position] = [0, 0];
  const take = (end: Uint8Array) => {
    const line = Buffer.concat([...rest, end])
      .toString("utf8")
      .replace(/\r$/, "");
    [rest, restBytes] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    onChunk(chunk);
    let from = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      const bytes = restBytes + end - from + 1;
      yield { line: take(chunk.subarray(from, end)), position };
      position += bytes;
      from = end + 1;
    }
    rest.push(Buffer.from(chunk.subarray(from)));
    restBytes += chunk.length - from;
    if (restBytes > maxLineBytes) throw tooLongLine(file);
  }
  if (restBytes > 0) yield { line: take(new Uint8Array()), position };
}

const tooLongLine = (file: string): Error =>
  new Error(
    `${file}: got a line of more than ${maxLineBytes / 2 ** 20} MiB, expected rows of at most that size. ` +
      "Restore the file, or measure again.",
  );
