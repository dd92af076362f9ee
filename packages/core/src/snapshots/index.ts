export { fileStore, type FileStoreOptions } from "./storage/file-store.ts";
export {
  errnoOf,
  nodeFiles,
  syncFolder,
  type FileReader,
  type FileSystem,
  type OpenFile,
} from "./storage/files.ts";
export { snapshotJsonSchema } from "./json-schema.ts";
export { keptRows } from "./storage/kept-rows.ts";
export {
  takeLock,
  withLock,
  writerAt,
  type LockHolder,
  type LockOwner,
  type Writer,
} from "./storage/lock.ts";
export { parseSnapshot, parseSnapshotText } from "./parse-snapshot.ts";
export {
  readRun,
  type PhaseRecord,
  type RunRecord,
  type Series,
  type SeriesPoint,
} from "./storage/read-run.ts";
export { summarizeReceipt, type ReceiptSummary } from "./receipt.ts";
export type { RunProblem } from "./storage/scan.ts";
export { snapshotSchema } from "../contracts/snapshot.ts";
export { csvLine, tidyColumns, tidyLook, tidyRows, type TidyRow } from "./storage/tidy-rows.ts";
export { fileVerdictCache } from "./storage/verdict-files.ts";
export {
  appendLines,
  readIfPresent,
  readLines,
  readTextFile,
  removeDrafts,
  storeError,
  writeWhole,
  type Content,
} from "./storage/atomic-file.ts";
