import { cut, damaged, shown } from "./damaged.ts";
import { bytesPerElement, dtypes, isDType, type DType } from "./dtypes.ts";
import { isObject, parseHeaderText } from "./header-text.ts";

/** The reference implementation's own limit, so that a hostile length cannot ask for all memory. */
export const maxHeaderBytes = 100_000_000;

export interface TensorInfo {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Bytes from the start of the file. */
  readonly offset: number;
  readonly byteLength: number;
}

export interface SafetensorsHeader {
  /** In the order of the file's data. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly metadata: Readonly<Record<string, string>>;
}

/**
 * Checks a header as the reference implementation does (safetensors 0.5, `SafeTensors::read_metadata` and
 * `Metadata::validate`): the tensors fill the data without a gap or an overlap, from its first byte to its last.
 *
 * @param json the header's JSON text
 * @param dataOffset bytes from the start of the file to the data
 * @param fileBytes size of the file
 * @param where names the file in errors
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
        `${where}, tensor ${cut(tensor.name)}`,
        `data that begins at byte ${tensor.offset - dataOffset}`,
        `byte ${end - dataOffset}, where the tensor before it ends (no gap, no overlap)`,
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
  if (!isObject(value) || !Object.values(value).every((text) => typeof text === "string")) {
    throw damaged(where, "a __metadata__ that holds other things than text", "text by name");
  }
  return value as Record<string, string>;
}

function parseTensor(name: string, entry: unknown, dataOffset: number, file: string): TensorInfo {
  const where = `${file}, tensor ${cut(name)}`;
  if (!isObject(entry)) throw damaged(where, shown(entry), "an object with dtype, shape, data_offsets");
  const { dtype, shape, data_offsets: offsets } = entry;
  if (!isDType(dtype)) throw damaged(where, `dtype ${shown(dtype)}`, `one of ${dtypes.join(", ")}`);
  if (!isListOfSizes(shape)) throw damaged(where, `shape ${shown(shape)}`, "sizes of 0 or more");
  if (!isListOfSizes(offsets) || offsets.length !== 2 || offsets[1]! < offsets[0]!) {
    throw damaged(where, `data_offsets ${shown(offsets)}`, "[begin, end] with 0 ≤ begin ≤ end");
  }
  const byteLength = shape.reduce((product, size) => product * size, bytesPerElement(dtype));
  const [begin, end] = offsets as [number, number];
  if (end - begin !== byteLength) {
    throw damaged(where, `${end - begin} bytes`, `${byteLength}, as ${dtype} ${shown(shape)} takes`);
  }
  return { name, dtype, shape, offset: dataOffset + begin, byteLength };
}

function isListOfSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}
