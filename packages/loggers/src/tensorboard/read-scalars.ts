import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { storeError } from "@periodic-eval/store";
import { maskedCrc32c } from "./event-file.ts";

export const scalarKey = (step: number, tag: string): string => `${step} ${tag}`;

/**
 * Reads scalars as TensorBoard would show them: the last value of each as float32, by key.
 *
 * @param wanted Keys of `scalarKey`.
 * @throws PeriodicEvalError `store` if a file cannot be read.
 */
export function readScalars(folder: string, wanted: ReadonlySet<string>): Map<string, number> {
  const latest = new Map<string, { readonly step: number; readonly value: number }>();
  if (wanted.size === 0 || !existsSync(folder)) return new Map();
  try {
    const names = readdirSync(folder).filter((name) => name.startsWith("events.out.tfevents."));
    for (const name of names.toSorted()) {
      for (const { step, isRestart, scalars } of eventsOf(readFileSync(join(folder, name)))) {
        for (const [key, earlier] of isRestart ? latest : []) if (earlier.step >= step) latest.delete(key);
        for (const [tag, value] of scalars) {
          const key = scalarKey(step, tag);
          if (wanted.has(key)) latest.set(key, { step, value });
        }
      }
    }
  } catch (error) {
    throw storeError(folder, error);
  }
  return new Map([...latest].map(([key, { value }]) => [key, value]));
}

interface ReadEvent {
  readonly step: number;
  readonly isRestart: boolean;
  readonly scalars: readonly (readonly [tag: string, value: number])[];
}

/** Yields the events up to the first incomplete or damaged record. TensorBoard stops there too. */
function* eventsOf(file: Uint8Array): Generator<ReadEvent> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  for (let at = 0; at + 16 <= file.length;) {
    const length = Number(view.getBigUint64(at, true));
    if (view.getUint32(at + 8, true) !== maskedCrc32c(file.subarray(at, at + 8))) return;
    const end = at + 12 + length;
    if (end + 4 > file.length) return;
    const data = file.subarray(at + 12, end);
    if (view.getUint32(end, true) !== maskedCrc32c(data)) return;
    yield eventOf(data);
    at += 16 + length;
  }
}

function eventOf(bytes: Uint8Array): ReadEvent {
  let [step, isRestart] = [0, false];
  const scalars: (readonly [string, number])[] = [];
  eachField(new BinaryReader(bytes), {
    2: (reader) => (step = Number(reader.int64())),
    5: (reader) => eachField(inside(reader), { 1: (value) => scalars.push(scalarOf(inside(value))) }),
    7: (reader) => {
      reader.skip(WireType.LengthDelimited);
      isRestart = true;
    },
  });
  return { step, isRestart, scalars };
}

function scalarOf(reader: BinaryReader): readonly [string, number] {
  let [tag, value] = ["", 0];
  eachField(reader, { 1: () => (tag = reader.string()), 2: () => (value = reader.float()) });
  return [tag, value];
}

const inside = (reader: BinaryReader) => new BinaryReader(reader.bytes());

function eachField(
  reader: BinaryReader,
  fields: Readonly<Record<number, (reader: BinaryReader) => unknown>>,
): void {
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    const read = fields[field];
    if (read === undefined) reader.skip(type);
    else read(reader);
  }
}
