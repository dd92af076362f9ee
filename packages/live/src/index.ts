export { checkClient, type ClientCheck } from "./conformance.ts";
export type { MeasureOn } from "./served-adapter.ts";
export { liveJsonSchema } from "./json-schema.ts";
export { serveTrainer, type LiveHostOptions } from "./host.ts";
export type { Hello } from "./protocol.ts";
