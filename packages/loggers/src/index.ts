export { jsonNumber, snapshotScalars, trainScalars, type Scalars } from "./scalars.ts";
