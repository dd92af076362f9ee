export {
  hasChanged,
  readCheckpointFolder,
  type CheckpointFolder,
  listCheckpoints,
  type Candidate,
} from "./checkpoints/checkpoint-folder.ts";
export {
  type LoggedMetrics,
  type TrainerState,
  readTrainerStates,
  beginningOf,
  tellTrainings,
  trainingDifference,
  type DatedState,
  type TrainingBeginning,
  type Trainings,
} from "./checkpoints/trainer-state.ts";
export * from "./checkpoints/watch-checkpoints.ts";
export {
  jsonService,
  type JsonReply,
  type JsonService,
  type JsonServiceOptions,
} from "./http/json-service.ts";
export type { ServedModel, ServerOptions } from "./engine/options.ts";
export * from "./engine/server.ts";
export { arrayOrNull, at, isString, totalTokens, usageOf } from "./http/reply-fields.ts";
export { requestLimits, type RequestLimits } from "./http/request-limits.ts";
export { trackCall, type TrackedCall } from "./http/track-requests.ts";
export * from "./judges/open-judge.ts";
export * from "./models/anthropic.ts";
export * from "./models/openai.ts";
export type { ServedModelOptions } from "./models/served-model.ts";
export { chatOf, type ServedChat } from "./models/chat-message.ts";
