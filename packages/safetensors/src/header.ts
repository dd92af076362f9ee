import { isCount, isRecord, quoteValue } from "@periodic-eval/contracts/options";
import { strictJson } from "@periodic-eval/data";
import { bytesPerElement, dtypes, isDType, type DType } from "./dtypes.ts";
import { PeriodicEvalError } from "@periodic-eval/contracts";

/** The reference implementation has the same limit. It keeps a hostile length from allocating all memory. */
export const maxHeaderBytes = 100_000_000;

/** A tensor as the header describes it. */
export interface TensorInfo {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Byte offset of the data from the start of the file. */
  readonly offset: number;
  readonly byteLength: number;
}

export interface SafetensorsHeader {
  /** By name, in the order of the data in the file. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Parses and checks a header like the reference implementation (safetensors 0.5, `SafeTensors::read_metadata` and
 * `Metadata::validate`): the tensors must cover the data from its first byte to its last, without gaps and overlaps.
 *
 * @param json The JSON text of the header.
 * @param dataOffset Bytes from the start of the file to the data.
 * @param fileBytes Size of the file.
 * @param where Names the file in errors.
 * @throws PeriodicEvalError `model` for a header that does not follow the format.
 */
export function parseHeader(
  json: string,
  { dataOffset, fileBytes, where }: { dataOffset: number; fileBytes: number; where: string },
): SafetensorsHeader {
  const entries = Object.entries(parseHeaderText(json, where));
  const metadata = parseMetadata(entries.find(([name]) => name === "__metadata__")?.[1], where);
  const tensors = entries
    .filter(([name]) => name !== "__metadata__")
    .map(([name, entry]) => parseTensor(name, entry, dataOffset, where))
    .sort((a, b) => a.offset - b.offset || a.byteLength - b.byteLength);
  let end = dataOffset;
  for (const tensor of tensors) {
    if (tensor.offset !== end) {
      throw damaged(
        `${where}, tensor ${shortName(tensor.name)}`,
        `data that begins at byte ${tensor.offset - dataOffset}`,
        `byte ${end - dataOffset}, where the previous tensor ends (without gap or overlap)`,
      );
    }
    end += tensor.byteLength;
  }
  if (end !== fileBytes) {
    throw damaged(where, `a file of ${fileBytes} bytes`, `the ${end} bytes that its header describes`);
  }
  return { tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])), metadata };
}

function parseMetadata(value: unknown, where: string): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  if (!isRecord(value) || !Object.values(value).every((text) => typeof text === "string")) {
    throw damaged(where, "a __metadata__ with values that are not strings", "an object of strings");
  }
  return value as Record<string, string>;
}

function parseTensor(name: string, entry: unknown, dataOffset: number, file: string): TensorInfo {
  const where = `${file}, tensor ${shortName(name)}`;
  if (!isRecord(entry)) throw damaged(where, quoteValue(entry), "an object with dtype, shape, data_offsets");
  const { dtype, shape, data_offsets: offsets } = entry;
  if (!isDType(dtype)) throw damaged(where, `dtype ${quoteValue(dtype)}`, `one of ${dtypes.join(", ")}`);
  if (!isSizeArray(shape))
    throw damaged(where, `shape ${quoteValue(shape)}`, "an array of integers of 0 or more");
  if (!isSizeArray(offsets) || offsets.length !== 2 || offsets[1]! < offsets[0]!) {
    throw damaged(where, `data_offsets ${quoteValue(offsets)}`, "[begin, end] with 0 ≤ begin ≤ end");
  }
  const byteLength = shape.reduce((product, size) => product * size, bytesPerElement(dtype));
  const [begin, end] = offsets as [number, number];
  if (end - begin !== byteLength) {
    throw damaged(where, `${end - begin} bytes`, `${byteLength} bytes for ${dtype} ${quoteValue(shape)}`);
  }
  return { name, dtype, shape, offset: dataOffset + begin, byteLength };
}

function isSizeArray(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((size) => isCount(size));
}

/** Parses the text of a header. Rejects repeated names, because some readers use the first value and others the last. */
function parseHeaderText(json: string, where: string): Readonly<Record<string, unknown>> {
  const parsed = strictJson(json);
  if (parsed.fault !== null)
    throw damaged(where, parsed.fault.got, parsed.fault.expected, parsed.fault.cause);
  if (!isRecord(parsed.value)) throw damaged(where, "a header that is not a JSON object", "a JSON object");
  return parsed.value;
}

/** Returns the error for a file that does not follow the format. */
export function damaged(where: string, got: string, expected: string, cause?: unknown): PeriodicEvalError {
  const fix = "Download or write the file again: it is truncated, damaged or not a safetensors file.";
  return new PeriodicEvalError({ code: "model", where, got, expected, fix, cause });
}

/** Cuts a name for an error message: a file may contain names of any length. */
export function shortName(name: string): string {
  return name.length > 120 ? `${name.slice(0, 120)}…` : name;
}
