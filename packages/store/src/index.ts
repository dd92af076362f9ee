export {
  appendLines,
  makeFolder,
  removeTemporaryFiles,
  writeFileAtomic,
  type Content,
  writeOnce,
} from "./files/atomic-file.ts";
export {
  checkWritable,
  errnoOf,
  makeFolderSync,
  nodeFiles,
  type FileReader,
  type FileSystem,
  type OpenFile,
  checkFolder,
  storeError,
} from "./files/file-system.ts";
export { hashFiles, hashWeightFiles } from "./files/hash-files.ts";
export {
  readIfPresent,
  readLines,
  readTextFile,
  unreadable,
  invalidUtf8,
  utf8Text,
} from "./files/read-file.ts";
export * from "./files/whole-folder.ts";
export type { Lease } from "./lock/lease.ts";
export { stateOfProcess, thisProcess, type LockHolder, type LockOwner } from "./lock/lock-owner.ts";
export { readWriter, takeLock, withLock, type TakeOptions } from "./lock/lock.ts";
export * from "./process/process.ts";
export * from "./process/time.ts";
export * from "./snapshots/file-store.ts";
export * from "./snapshots/file-verdict-cache.ts";
export { samplesPath, inRunOrder, keyText, keysOfSteps } from "./snapshots/layout.ts";
export { differencesOf, otherItems } from "./snapshots/pairing.ts";
export { declarePhases } from "./snapshots/phase-files.ts";
export * from "./snapshots/read-run.ts";
export type { InspectOptions } from "./snapshots/scan-snapshots.ts";
export {
  snapshotJsonSchema,
  parseSnapshot,
  checkRows,
  parseVerified,
  readRows,
} from "./snapshots/snapshot-file.ts";
export { csvLine, tidyColumns, tidyRows, tidySnapshotRows, type TidyRow } from "./snapshots/tidy-rows.ts";
export * from "./snapshots/undisturbed.ts";
export * from "./snapshots/warnings.ts";
