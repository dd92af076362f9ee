import { dirname } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { afterEach, beforeEach, expect } from "vitest";
import { openedFiles } from "./opened-files.ts";
import { peakMemory } from "./refusal.ts";

/**
 * No case may open a file outside its folder, or take the memory that a file speaks of. For tests that mock
 * `node:fs/promises` with `recorded`; called after the hook that makes the folder.
 */
export function watchFilesAndMemory(folder: () => string): void {
  let peak = 0;
  beforeEach(() => {
    openedFiles.length = 0;
    peak = peakMemory();
  });
  afterEach(() => {
    expect(openedFiles.filter((path) => dirname(path) !== folder())).toEqual([]);
    expect(peakMemory() - peak).toBeLessThan(600e6);
  });
}

/** No case may leave tensors. */
export function watchTensors(): void {
  let tensors = 0;
  beforeEach(() => void (tensors = tf.memory().numTensors));
  afterEach(() => expect(tf.memory().numTensors).toBe(tensors));
}

/** What stands in a safetensors header of a tensor, right or wrong. */
export interface Entry {
  dtype: unknown;
  shape: unknown;
  data_offsets: unknown;
  [more: string]: unknown;
}
export type Header = Record<string, Entry>;

export const headerOf = (file: Buffer): Header =>
  JSON.parse(file.toString("utf8", 8, 8 + Number(file.readBigUInt64LE(0)))) as Header;

export const dataOf = (file: Buffer): Buffer => file.subarray(8 + Number(file.readBigUInt64LE(0)));

/** A file of this header, as text or bytes where it is no object; its length may be told wrongly. */
export function safetensorsOf(header: string | Buffer | object, data: Buffer, length?: bigint): Buffer {
  const isText = typeof header === "string" || Buffer.isBuffer(header);
  const text = Buffer.from(isText ? header : JSON.stringify(header));
  const start = Buffer.alloc(8);
  start.writeBigUInt64LE(length ?? BigInt(text.length));
  return Buffer.concat([start, text, data]);
}
