/** Models and datasets of the Hugging Face hub in the cache shared with huggingface_hub, and rows of files. Node only. */
export { checkAdapterBase } from "./hub/adapter-base.ts";
export { isOffline } from "./hub/access.ts";
export { hubNameOf, openHubCache, type HubCache } from "./hub/cache.ts";
export { isHubSource, parseDatasetName } from "./sources/datasets.ts";
export { fetchPinnedFile, pinnedPath, pinnedUrl, type PinnedFile } from "./hub/pinned-file.ts";
export { cachedSplit, fetchSplit, type DatasetSplit, type SplitFile } from "./sources/datasets.ts";
export { decodeParquet, type ParquetLimits, type ParquetRow } from "#parquet-process";
export { cacheError, fetchFile, type HubCommit } from "./hub/download.ts";
export { formatHubId, parseHubId, type HubId, type HubRepo } from "./hub/hub-id.ts";
export { isOneValue, parseCsv, textFormats, type ParseText } from "./rows/parse-text.ts";
export { checkCached, readSource, readSplit, type SourceRows } from "./sources/read-source.ts";
export { openRepository, type HubFile, type Repository } from "./hub/repository.ts";
export { isUnreachable } from "./hub/request-error.ts";
export { checkOnlyRow, type DataRow, type PlacedRow } from "./rows/rows.ts";
export { unpack } from "./rows/unpack.ts";

export { ReplyTooLargeError, fetchBounded, joinBytes, maxReplyBytes } from "./http/fetch-bounded.ts";
export { headerReadings } from "./http/host-names.ts";
export { bareHost, isLoopback, isOriginOf, isOwnHost } from "./http/host-names.ts";
export { maskSecret } from "./http/fetch-bounded.ts";
export { shardedCheckpoint } from "./hub/sharded-checkpoint.ts";
export { findMarked, isMarkedNumber, markNumbers, withoutMark } from "./rows/walk-json.ts";
export { fixForMissing, isMissingFile } from "./rows/missing-source.ts";
export { parsePythonJson } from "./rows/walk-json.ts";
export { placed } from "./rows/rows.ts";
export { parseJson, strictJson } from "./rows/parse-text.ts";
export { repeatedKey } from "./rows/walk-json.ts";
export { isRowSource } from "./sources/datasets.ts";
export {
  parseData,
  placesIn,
  readData,
  readText,
  readYaml,
  type PlaceOf,
  type SourceData,
} from "./sources/read-data.ts";
export { uniqueIds } from "./questions/question-fields.ts";
export { readArcRow, readQuestions, type ArcQuestion } from "./questions/arc-questions.ts";
export { type AlignmentQuestion, type JudgePrompts } from "./questions/alignment-questions.ts";
export {
  betley2025Questions,
  isPublishedQuestions,
  readAlignmentQuestions,
  type QuestionSource,
} from "./questions/alignment-questions.ts";
