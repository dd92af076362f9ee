export * from "./causal-lm.ts";
