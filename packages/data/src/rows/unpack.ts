import { gunzip } from "@periodic-eval/store/platform";
import { dataError, errorMessage } from "@periodic-eval/contracts/options";

type Format = readonly [bytes: string, name: string, fix: string];

const compressed = (bytes: string, name: string, program: string): Format => [
  bytes,
  `a file compressed with ${name}`,
  `Decompress it with \`${program}\`, or compress it with gzip.`,
];

/** The first bytes of files that are no text, with their names and remedies. */
const refused: readonly Format[] = [
  ["PAR1", "a Parquet file with another ending", "Let its name end in .parquet."],
  ["ARROW1", "an Arrow file", "Write Parquet or JSON Lines: datasets.Dataset.from_file(path).to_parquet(…)."],
  ["PK\u0003\u0004", "a zip archive", "Unpack it, or compress the rows with gzip."],
  compressed("\u0028\u00b5\u002f\u00fd", "zstd", "zstd -d"),
  compressed("BZh", "bzip2", "bunzip2"),
  compressed("\u00fd7zXZ\u0000", "xz", "unxz"),
  compressed("\u0004\u0022\u004d\u0018", "lz4", "lz4 -d"),
];

/**
 * Returns the content of a text file, decompressed if it is a gzip file, by its first bytes as in `datasets`.
 *
 * @param chunks The bytes of the file.
 * @param name Names the file in errors.
 * @throws PeriodicEvalError `data` for a file of another format that is known, and for damaged gzip data.
 */
export async function* unpack(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<Uint8Array, void> {
  const iterator = chunks[Symbol.asyncIterator]();
  try {
    const first = await iterator.next();
    if (first.done === true) return;
    const head = String.fromCharCode(...first.value.subarray(0, 8));
    const known = refused.find(([bytes]) => head.startsWith(bytes));
    const expected = "JSON, JSON Lines or Parquet, or one of the text formats in gzip";
    if (known !== undefined) throw dataError(name, known[1], expected, known[2]);
    const all = chain(first.value, iterator);
    yield* head.startsWith("\u001f\u008b") ? gunzip(all) : all;
  } catch (cause) {
    if (!String((cause as { readonly code?: unknown }).code).startsWith("Z_")) throw cause;
    const got = `gzip data that is damaged or cut off (${errorMessage(cause)})`;
    throw dataError(name, got, "a complete gzip file", "Copy or compress the file again.", cause);
  } finally {
    await iterator.return?.();
  }
}

async function* chain(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  yield first;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}
