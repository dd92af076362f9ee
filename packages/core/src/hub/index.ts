/** Models and datasets of the Hugging Face hub in the cache shared with huggingface_hub, and rows of files. Node only. */
export { checkAdapterBase } from "./adapter-base.ts";
export { isOffline } from "./access.ts";
export { hubNameOf, openHubCache, type HubCache } from "./cache.ts";
export { isHubSource, parseDatasetName } from "./dataset-name.ts";
export { fetchPinnedFile, pinnedPath, pinnedUrl, type PinnedFile } from "./pinned-file.ts";
export { cachedSplit, fetchSplit, type DatasetSplit, type SplitFile } from "./datasets.ts";
export { decodeParquet, type ParquetLimits, type ParquetRow } from "#decode-parquet";
export { cacheError, fetchFile, type HubCommit } from "./fetch-file.ts";
export { formatHubId, parseHubId, type HubId, type HubRepo } from "./hub-id.ts";
export { isOneValue, textFormats, type ParseText } from "./parse-text.ts";
export { checkCached, readSource, readSplit, type HubProvenance, type SourceRows } from "./read-source.ts";
export { openRepository, type HubFile, type Repository } from "./repository.ts";
export { isUnreachable } from "./request-error.ts";
export { checkOnlyRow, checkRowLength, type DataRow, type PlacedRow } from "./rows.ts";
export { unpack } from "./unpack.ts";
export { invalidUtf8, utf8Text } from "../snapshots/storage/utf8.ts";
