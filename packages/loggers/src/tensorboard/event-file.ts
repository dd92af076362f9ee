import { appendFileSync, closeSync, fsyncSync, openSync, readdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { checkFolder, storeError, makeFolderSync } from "@periodic-eval/store";
import { eventRecord, type Event } from "./event.ts";

export interface EventFile {
  /** Writes an event synchronously, so that a killed process loses none. */
  write(event: Event, wallTime: number): void;
  close(): void;
}

/**
 * Creates an event file in a folder. Readers sort a folder's files by name, and names begin with a time in seconds, so the time
 * is later than that of every existing file.
 *
 * @throws PeriodicEvalError `store` if the file cannot be written.
 */
export function newEventFile(folder: string, wallTime: number): EventFile {
  try {
    makeFolderSync(folder);
    const times = readdirSync(folder).map((name) =>
      Number(/^events\.out\.tfevents\.(\d+)\./.exec(name)?.[1] ?? 0),
    );
    const time = Math.max(Math.floor(wallTime), ...times.map((earlier) => earlier + 1));
    const path = join(
      folder,
      `events.out.tfevents.${String(time).padStart(10, "0")}.${hostname()}.${process.pid}`,
    );
    const file = openSync(path, "ax");
    const write: EventFile["write"] = (event, at) => {
      try {
        checkFolder(path);
        appendFileSync(file, eventRecord(event, at));
      } catch (error) {
        throw storeError(path, error);
      }
    };
    write({ fileVersion: "brain.Event:2" }, wallTime);
    return {
      write,
      close() {
        fsyncSync(file);
        closeSync(file);
      },
    };
  } catch (error) {
    throw storeError(folder, error);
  }
}
