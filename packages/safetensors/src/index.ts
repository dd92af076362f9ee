export type { DType, TensorValues } from "./dtypes.ts";
export { narrowToBf16, narrowToF16, widenBf16, widenF16 } from "./dtypes.ts";
export type { SafetensorsHeader, TensorInfo } from "./header.ts";
export { openSafetensors, readSafetensorsHeader, type SafetensorsFile, type ValueRange } from "./read.ts";
export { writeSafetensors, type TensorToWrite, type WriteOptions } from "./write.ts";
