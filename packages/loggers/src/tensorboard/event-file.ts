import { appendFileSync, closeSync, fsyncSync, openSync, readdirSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { checkFolder, storeError, makeFolderSync } from "@periodic-eval/store";
import type { Scalars } from "../scalars.ts";

/** Returns the CRC-32C (Castagnoli, reflected polynomial 0x82f63b78, RFC 3720) as an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = table[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

/** Returns the masked checksum of TFRecord. Masking avoids special values for data that contain their own checksum. */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc;
});

type Event =
  /** The first event of a file. Readers process version 2 in the order of writing, not of steps. */
  | { readonly fileVersion: "brain.Event:2" }
  /** Makes readers discard events of earlier files from this step on (`SessionLog.START`). */
  | { readonly restartsAt: number }
  | { readonly step: number; readonly scalars: Scalars };

/**
 * Encodes a record of an event file: an `Event` of tensorflow/core/util/event.proto (TensorFlow 2.9) in TFRecord framing. Values
 * are float32, which `EventAccumulator.Scalars` reads.
 *
 * @param wallTime Seconds since 1970.
 */
function eventRecord(event: Event, wallTime: number): Uint8Array {
  const out = new BinaryWriter();
  out.tag(1, WireType.Bit64).double(wallTime);
  if ("fileVersion" in event) {
    out.tag(3, WireType.LengthDelimited).string(event.fileVersion);
  } else if ("restartsAt" in event) {
    out.tag(2, WireType.Varint).int64(event.restartsAt);
    out.tag(7, WireType.LengthDelimited).fork();
    out.tag(1, WireType.Varint).int32(sessionStart);
    out.join();
  } else {
    out.tag(2, WireType.Varint).int64(event.step);
    out.tag(5, WireType.LengthDelimited).fork();
    for (const [tag, value] of Object.entries(event.scalars)) {
      out.tag(1, WireType.LengthDelimited).fork();
      out.tag(1, WireType.LengthDelimited).string(tag);
      out.tag(2, WireType.Bit32).float(Math.fround(value));
      out.join();
    }
    out.join();
  }
  return framed(out.finish());
}

/** `SessionLog.SessionStatus.START`. */
const sessionStart = 1;

/** Adds TFRecord framing: length, its checksum, the data, their checksum; little-endian. */
function framed(data: Uint8Array): Uint8Array {
  const record = new Uint8Array(8 + 4 + data.length + 4);
  const view = new DataView(record.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, maskedCrc32c(record.subarray(0, 8)), true);
  record.set(data, 12);
  view.setUint32(12 + data.length, maskedCrc32c(data), true);
  return record;
}

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
