import { type FileHandle, open } from "@periodic-eval/store/platform";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { bytesInMemory, bytesPerElement, valuesOf, type TensorValues } from "./dtypes.ts";
import {
  maxHeaderBytes,
  parseHeader,
  type SafetensorsHeader,
  type TensorInfo,
  damaged,
  shortName,
} from "./header.ts";

/** A range of a tensor's values in row-major order: `from` ≤ index < `to`. */
export type ValueRange = readonly [from: number, to: number];

/** An open file. */
export interface SafetensorsFile extends SafetensorsHeader {
  readonly path: string;
  /**
   * Reads the values of one tensor, or a range of them, in row-major order. f16 and bf16 are widened to float32.
   *
   * @throws PeriodicEvalError `model` for an unknown name, a range outside of the tensor or unreadable bytes.
   */
  read(name: string, range?: ValueRange): Promise<TensorValues>;
  close(): Promise<void>;
}

/**
 * Reads and checks the names, types and shapes in a file, without reading tensors.
 *
 * @throws PeriodicEvalError `model` for a damaged file.
 */
export async function readSafetensorsHeader(path: string): Promise<SafetensorsHeader> {
  const file = await openSafetensors(path);
  await file.close();
  return { tensors: file.tensors, metadata: file.metadata };
}

/**
 * Opens a file and checks its header. Each `read` reads one tensor. The caller closes the file.
 *
 * @throws PeriodicEvalError `model` for a damaged file.
 */
export async function openSafetensors(path: string): Promise<SafetensorsFile> {
  const handle = await openFile(path);
  try {
    const header = await readHeader(handle, path);
    return {
      ...header,
      path,
      async read(name, range) {
        const info = header.tensors.get(name);
        if (info === undefined) throw unknownTensor(path, name, header);
        const where = `${path}, tensor ${shortName(name)}`;
        const [from, to] = bytesOf(info, range, where);
        // Widen in place: a separate buffer for the file's bytes would need 50 % more memory.
        const { buffer } = allocate(bytesInMemory(info.dtype, to - from), where);
        const last = new Uint8Array(buffer, buffer.byteLength - (to - from));
        await fill(last, handle, info.offset + from, where);
        return valuesOf(info.dtype, buffer);
      },
      close: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function readHeader(handle: FileHandle, path: string): Promise<SafetensorsHeader> {
  const stat = await handle.stat();
  if (!stat.isFile()) throw damaged(path, "a folder or device", "a file");
  const fileBytes = stat.size;
  if (fileBytes < 8)
    throw damaged(path, `a file of ${fileBytes} bytes`, "at least 8 bytes, the length of the header");
  const length = new DataView(await readExactly(handle, 0, 8, path)).getBigUint64(0, true);
  const largest = Math.min(maxHeaderBytes, fileBytes - 8);
  if (length > BigInt(largest)) {
    throw damaged(path, `a header of ${length} bytes`, `at most ${largest} in a file of ${fileBytes} bytes`);
  }
  const bytes = await readExactly(handle, 8, Number(length), path);
  const json = decodeUtf8(bytes, path);
  return parseHeader(json, { dataOffset: 8 + Number(length), fileBytes, where: path });
}

function decodeUtf8(bytes: ArrayBuffer, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw damaged(path, "a header that is not UTF-8", "UTF-8 text", cause);
  }
}

async function readExactly(
  handle: FileHandle,
  position: number,
  length: number,
  where: string,
): Promise<ArrayBuffer> {
  const bytes = allocate(length, where);
  await fill(bytes, handle, position, where);
  return bytes.buffer;
}

async function fill(bytes: Uint8Array, handle: FileHandle, position: number, where: string): Promise<void> {
  const { length } = bytes;
  let done = 0;
  // One system call reads at most 2 GiB.
  while (done < length) {
    const step = Math.min(length - done, 1 << 30);
    const { bytesRead } = await handle.read(bytes, done, step, position + done).catch((cause: unknown) => {
      throw damaged(where, errorMessage(cause), "readable bytes", cause);
    });
    if (bytesRead === 0) throw damaged(where, `${done} bytes`, `${length} bytes from byte ${position}`);
    done += bytesRead;
  }
}

/** Allocates bytes. A sparse file can claim a size that exceeds memory. */
function allocate(length: number, where: string): Uint8Array<ArrayBuffer> {
  try {
    return new Uint8Array(length);
  } catch (cause) {
    throw damaged(where, `${length} bytes`, "a size that fits into memory", cause);
  }
}

function bytesOf(
  { dtype, byteLength }: TensorInfo,
  range: ValueRange | undefined,
  where: string,
): ValueRange {
  const bytes = bytesPerElement(dtype);
  const size = byteLength / bytes;
  const [from, to] = range ?? [0, size];
  if (Number.isInteger(from) && Number.isInteger(to) && 0 <= from && from <= to && to <= size)
    return [from * bytes, to * bytes];
  throw new PeriodicEvalError({
    code: "model",
    where,
    got: `the range [${from}, ${to}]`,
    expected: `integers with 0 ≤ from ≤ to ≤ ${size}, the number of values`,
    fix: "Compute the number of values from the tensor's shape.",
  });
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "model",
      where: path,
      got: (cause as NodeJS.ErrnoException).code ?? String(cause),
      expected: "a readable safetensors file",
      fix: "Check the path and its permissions.",
      cause,
    });
  }
}

function unknownTensor(path: string, name: string, header: SafetensorsHeader): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where: path,
    got: `the name ${shortName(name)}`,
    expected: `one of its ${header.tensors.size} tensors`,
    fix: "Use a name from `tensors`.",
  });
}
