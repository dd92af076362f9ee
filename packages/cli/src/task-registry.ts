import type { TaskRegistry } from "@periodic-eval/tasks";

/** The tasks that commands can name; asked for where one is run, for the sake of those that need none. */
export type LoadTasks = () => Promise<TaskRegistry>;

export const loadTasks: LoadTasks = async () => (await import("@periodic-eval/tasks")).tasks;
