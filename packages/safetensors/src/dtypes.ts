import { widenBf16, widenF16 } from "./float-formats.ts";

/** Element types that can be read. `BOOL` is one byte, 0 or 1. */
export type DType =
  | "BOOL"
  | "U8"
  | "I8"
  | "I16"
  | "U16"
  | "F16"
  | "BF16"
  | "I32"
  | "U32"
  | "F32"
  | "I64"
  | "U64"
  | "F64";

/** The values of a tensor. 16-bit floats are widened to `Float32Array`; all other types are kept. */
export type TensorValues =
  | Uint8Array
  | Int8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

interface Format {
  /** Bytes per value in a file. */
  readonly bytes: number;
  /** Bytes per value in memory, if different. */
  readonly widened?: number;
  /** Converts a buffer whose last bytes are the bytes of the file. Its size is that of the values in memory. */
  read(buffer: ArrayBuffer): TensorValues;
}

const formats: Readonly<Record<DType, Format>> = {
  BOOL: { bytes: 1, read: (buffer) => new Uint8Array(buffer) },
  U8: { bytes: 1, read: (buffer) => new Uint8Array(buffer) },
  I8: { bytes: 1, read: (buffer) => new Int8Array(buffer) },
  I16: { bytes: 2, read: (buffer) => new Int16Array(buffer) },
  U16: { bytes: 2, read: (buffer) => new Uint16Array(buffer) },
  F16: { bytes: 2, widened: 4, read: (buffer) => widenF16(secondHalf(buffer), new Float32Array(buffer)) },
  BF16: { bytes: 2, widened: 4, read: (buffer) => widenBf16(secondHalf(buffer), new Float32Array(buffer)) },
  I32: { bytes: 4, read: (buffer) => new Int32Array(buffer) },
  U32: { bytes: 4, read: (buffer) => new Uint32Array(buffer) },
  F32: { bytes: 4, read: (buffer) => new Float32Array(buffer) },
  I64: { bytes: 8, read: (buffer) => new BigInt64Array(buffer) },
  U64: { bytes: 8, read: (buffer) => new BigUint64Array(buffer) },
  F64: { bytes: 8, read: (buffer) => new Float64Array(buffer) },
};

const secondHalf = (buffer: ArrayBuffer) => new Uint16Array(buffer, buffer.byteLength / 2);

export const dtypes = Object.keys(formats) as readonly DType[];

export function isDType(value: unknown): value is DType {
  return typeof value === "string" && Object.hasOwn(formats, value);
}

export function bytesPerElement(dtype: DType): number {
  return formats[dtype].bytes;
}

/** Returns the bytes in memory of a tensor with `byteLength` bytes in its file. */
export function bytesInMemory(dtype: DType, byteLength: number): number {
  const { bytes, widened = bytes } = formats[dtype];
  return (byteLength / bytes) * widened;
}

/** Returns the values in a buffer of `bytesInMemory` bytes that ends with the bytes of the file. The values share the buffer. */
export function valuesOf(dtype: DType, buffer: ArrayBuffer): TensorValues {
  return formats[dtype].read(buffer);
}
