export { watchCheckpoints, type WatchedCheckpoint, type WatchOptions } from "./watch-checkpoints.ts";
