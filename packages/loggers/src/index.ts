export { jsonNumber } from "./json-number.ts";
export { snapshotScalars, trainScalars, type Scalars } from "./scalars.ts";
