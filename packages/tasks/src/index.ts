export type { ChatOptions, Task, TaskOptions } from "./tasks/types.ts";
