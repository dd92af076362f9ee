export type * from "../contracts/run-record.ts";
export type { PhaseClosing, RunProblem } from "../contracts/snapshot.ts";
export { snapshotSchema } from "../contracts/snapshot.ts";

export { snapshotJsonSchema } from "./parse-snapshot.ts";
export { parseSnapshot, parseSnapshotText } from "./parse-snapshot.ts";
export { isVoid, voidReason, warningsOf } from "./warnings.ts";
export { differencesOf } from "./pairing.ts";
export { isOfCheckpoint, undisturbed, whyNotUndisturbed } from "./undisturbed.ts";
export { summarizeReceipt } from "./storage/read-run.ts";
export { csvLine, tidyColumns, tidyRows, tidySnapshotRows, type TidyRow } from "./tidy-rows.ts";

export { fileStore, type FileStoreOptions } from "./storage/file-store.ts";
export { fileVerdictCache } from "./storage/file-verdict-cache.ts";
export { checkRows, parseVerified, readRows } from "./storage/snapshot-file.ts";
export { readRun } from "./storage/read-run.ts";
export type { InspectOptions } from "./storage/inspect-run.ts";

export {
  appendLines,
  makeFolder,
  removeTemporaryFiles,
  writeFileAtomic,
  type Content,
} from "./storage/atomic-file.ts";
export {
  filesIn,
  putBackFolders,
  removeLeftovers,
  removeWholeFolder,
  writeWholeFolder,
} from "./storage/whole-folder.ts";
export { removeRunLeftovers } from "./storage/run-leftovers.ts";
export {
  checkWritable,
  errnoOf,
  makeFolderSync,
  nodeFiles,
  syncFolder,
  type FileReader,
  type FileSystem,
  type OpenFile,
} from "./storage/file-system.ts";
export { samplesPath } from "./storage/layout.ts";
export { hashFiles, hashWeightFiles } from "./storage/hash-files.ts";
export { writeOnce } from "./storage/write-once.ts";
export { declarePhases } from "./storage/closings.ts";
export { checkFolder } from "./storage/held-folders.ts";
export type { Lease } from "./storage/lease.ts";
export { readWriter, takeLock, withLock, type TakeOptions } from "./storage/lock.ts";
export { stateOfProcess, thisProcess, type LockHolder, type LockOwner } from "./storage/lock-owner.ts";
export { readIfPresent, readLines, readTextFile } from "./storage/read-file.ts";
export { storeError } from "./storage/file-system.ts";
