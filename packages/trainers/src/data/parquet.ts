import { brotliDecompressSync, gunzipSync } from "node:zlib";

/**
 * The rows of a Parquet file in their order, each an object by column. One row group is in memory at a time. Pages may be
 * uncompressed or compressed by snappy, gzip or brotli; what else is wrong with the file, its reader throws.
 */
export async function* readParquet(path: string): AsyncGenerator<Record<string, unknown>, void> {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import("hyparquet");
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file);
  let rowStart = 0;
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = rowStart + Number(num_rows);
    yield* await parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors });
    rowStart = rowEnd;
  }
}

/** The reader brings snappy itself. */
const compressors = {
  GZIP: (bytes: Uint8Array, maxOutputLength: number) => gunzipSync(bytes, { maxOutputLength }),
  BROTLI: (bytes: Uint8Array, maxOutputLength: number) => brotliDecompressSync(bytes, { maxOutputLength }),
};
