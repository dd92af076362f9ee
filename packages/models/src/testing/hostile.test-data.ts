import { dirname } from "node:path";
import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import fc from "fast-check";
import { afterEach, beforeEach, expect } from "vitest";
import { openedFiles } from "./opened-files.test-data.ts";

/**
 * Runs `work` and returns the `model` error that it throws. The error must come within 20 seconds, be shorter than 2000
 * characters and have all of its four parts.
 */
export async function modelErrorOf(work: () => Promise<unknown>): Promise<PeriodicEvalError> {
  const started = performance.now();
  const error: unknown = await work().then(
    () => "nothing was thrown",
    (thrown: unknown) => thrown,
  );
  expect(PeriodicEvalError.is(error), `${String(error)} ${(error as Error).stack ?? ""}`.slice(0, 600)).toBe(
    true,
  );
  const { code, where, got, expected, fix, message } = error as PeriodicEvalError;
  expect(code).toBe("model");
  for (const part of [where, got, expected, fix]) expect(part, message.slice(0, 600)).toMatch(/\S/);
  expect(message.length, message.slice(0, 600)).toBeLessThan(2000);
  expect(performance.now() - started).toBeLessThan(20_000);
  return error as PeriodicEvalError;
}

/** Asserts that `load` throws a `model` error or returns something to dispose, and disposes it. */
export async function expectModelOrError(load: () => Promise<unknown>): Promise<void> {
  const outcome = await load().catch((error: unknown) => error);
  if (PeriodicEvalError.is(outcome, "model")) return;
  expect(outcome).toHaveProperty("dispose");
  (outcome as { dispose(): void }).dispose();
}

/**
 * Asserts after each test that it opened no file outside its folder and used less than 600 MB more memory. The test file
 * mocks `node:fs/promises` with `recorded`. Call this after the hook that creates the folder.
 */
export function watchFilesAndMemory(folder: () => string): void {
  const peakMemory = () => process.resourceUsage().maxRSS * 1024;
  let peak = 0;
  beforeEach(() => {
    openedFiles.length = 0;
    peak = peakMemory();
  });
  afterEach(() => {
    const isInside = (path: string) => path === folder() || dirname(path) === folder();
    // Saving opens the folder above to make a new folder durable.
    const opened = openedFiles.filter((path) => !isInside(path) && path !== dirname(folder()));
    expect(opened).toEqual([]);
    expect(peakMemory() - peak).toBeLessThan(600e6);
  });
}

/** Asserts after each test that it left no tensors. */
export function watchTensors(): void {
  let tensors = 0;
  beforeEach(() => void (tensors = tf.memory().numTensors));
  afterEach(() => expect(tf.memory().numTensors).toBe(tensors));
}

/** The entry of a tensor in a safetensors header, valid or not. */
export interface Entry {
  dtype: unknown;
  shape: unknown;
  data_offsets: unknown;
  [more: string]: unknown;
}
export type Header = Record<string, Entry>;

const headerEnd = (file: Buffer): number => 8 + Number(file.readBigUInt64LE(0));

export const headerOf = (file: Buffer): Header =>
  JSON.parse(file.toString("utf8", 8, headerEnd(file))) as Header;

export const dataOf = (file: Buffer): Buffer => file.subarray(headerEnd(file));

/** Builds a safetensors file. A string or buffer is the raw header; `length` overrides the header's length. */
export function safetensorsOf(header: string | Buffer | object, data: Buffer, length?: bigint): Buffer {
  const isText = typeof header === "string" || Buffer.isBuffer(header);
  const text = Buffer.from(isText ? header : JSON.stringify(header));
  const start = Buffer.alloc(8);
  start.writeBigUInt64LE(length ?? BigInt(text.length));
  return Buffer.concat([start, text, data]);
}

/** Returns a copy of a safetensors file with `count` random bytes of its length and header replaced. */
export function withChangedHeader(file: Buffer, seed: number, count: number): Buffer {
  const changed = Buffer.from(file);
  const change = fc.tuple(fc.nat(headerEnd(file) - 1), fc.nat(255));
  for (const [at, byte] of fc.sample(change, { numRuns: count, seed })) changed[at] = byte;
  return changed;
}

/** Builds nested brackets or braces. */
export const deep = (open: string, close: string, count: number): string =>
  open.repeat(count) + close.repeat(count);
