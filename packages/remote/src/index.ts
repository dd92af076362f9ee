export { anthropicModel } from "./anthropic.ts";
export { judgeModel, judgeName, openJudge, type OpenJudgeOptions } from "./open-judge.ts";
export { openAiCompatible } from "./openai.ts";
export type { ServedModelOptions } from "./served-model.ts";
export { watchCheckpoints, type WatchedCheckpoint, type WatchOptions } from "./watch-checkpoints.ts";
