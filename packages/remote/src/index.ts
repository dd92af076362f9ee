export { anthropicModel } from "./anthropic.ts";
export { judgeModel, judgeName, openJudge, type OpenJudgeOptions } from "./open-judge.ts";
export { checkLimits } from "./limits.ts";
export { toldCall, type ToldCall } from "./told-requests.ts";
export { jsonService, type JsonReply, type JsonService, type JsonServiceOptions } from "./json-service.ts";
export { completionOf, openAiCompatible, seedNumber } from "./openai.ts";
export { at, isText, listOf, usageOf } from "./reply-fields.ts";
export { chatOf, type ServedChat, type ServedModelOptions } from "./served-model.ts";
export { watchCheckpoints, type WatchedCheckpoint, type WatchOptions } from "./watch-checkpoints.ts";
