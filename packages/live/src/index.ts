export { Connection, type ConnectionOptions, type TrainerHandlers } from "./connection.ts";
export { liveModel } from "./live-model.ts";
export { liveGuards } from "./live-guards.ts";
export { checkClient, ClientChecks, type ClientCheck } from "./conformance.ts";
export type { MeasureOn } from "./served-adapter.ts";
export { liveJsonSchema } from "./json-schema.ts";
export { serveTrainer, type LiveHostOptions } from "./host.ts";
export * from "./protocol.ts";
