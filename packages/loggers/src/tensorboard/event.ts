import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Scalars } from "../scalars.ts";
import { maskedCrc32c } from "./crc32c.ts";

export type Event =
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
export function eventRecord(event: Event, wallTime: number): Uint8Array {
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
