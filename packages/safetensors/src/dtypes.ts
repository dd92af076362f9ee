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

/*
 * 16-bit floats. Widening is exact. Narrowing rounds to nearest, ties to even, like torch's `.to(torch.bfloat16)` and
 * `.to(torch.float16)`. Values that are too large become infinite, and NaN stays NaN.
 */

/**
 * Widens bfloat16 bit patterns to float32. `bits` may be the second half of the memory of `values`: converting from first to last
 * never overwrites a pattern that is still needed.
 */
export function widenBf16(bits: Uint16Array, values = new Float32Array(bits.length)): Float32Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < bits.length; i++) words[i] = bits[i]! << 16;
  return values;
}

/** Narrows float32 to bfloat16 bit patterns. */
export function narrowToBf16(values: Float32Array): Uint16Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const bits = new Uint16Array(values.length);
  for (let i = 0; i < words.length; i++) {
    const word = words[i]!;
    const isNaN = (word & 0x7fffffff) > 0x7f800000;
    // Adding 0x7fff plus the lowest kept bit carries into the kept half exactly when rounding goes up.
    bits[i] = isNaN ? (word >>> 16) | 0x40 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
  return bits;
}

/** Widens IEEE 754 binary16 bit patterns to float32. `bits` and `values` may share memory as in `widenBf16`. */
export function widenF16(bits: Uint16Array, values = new Float32Array(bits.length)): Float32Array {
  const valueOf = halfTable();
  for (let i = 0; i < bits.length; i++) values[i] = valueOf[bits[i]!]!;
  return values;
}

/** Narrows float32 to binary16 bit patterns. */
export function narrowToF16(values: Float32Array): Uint16Array {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const bits = new Uint16Array(values.length);
  for (let i = 0; i < words.length; i++) bits[i] = halfOf(words[i]!, values[i]!);
  return bits;
}

function halfOf(word: number, value: number): number {
  const sign = (word >>> 16) & 0x8000;
  const magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // 65520 is half-way between the largest half, 65504, and the next power of two.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  // Below 2^-14 the spacing of halves is 2^-24.
  if (magnitude < 0x38800000) return sign | roundHalfToEven(Math.abs(value) * 2 ** 24);
  const rounded = magnitude + 0xfff + ((magnitude >>> 13) & 1);
  return sign | ((rounded - 0x38000000) >>> 13);
}

function roundHalfToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

let table: Float32Array | undefined;

/** Returns a table with the value of each of the 65,536 patterns. */
function halfTable(): Float32Array {
  table ??= Float32Array.from({ length: 65_536 }, (_, bits) => {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >>> 10) & 0x1f;
    const fraction = bits & 0x3ff;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
  return table;
}
