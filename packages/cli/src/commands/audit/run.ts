import { isHubSource } from "@periodic-eval/core/hub";
import {
  auditTask,
  auditText,
  datasetOf,
  taskNamed,
  type TaskAudit,
  type TaskRegistry,
} from "@periodic-eval/tasks";
import { join } from "node:path";
import { openModelOutline } from "../../config/open-model.ts";
import { dataFolderOf } from "../../config/task-data.ts";
import { chatOptions, type TaskPromptOptions } from "../../config/task-options.ts";
import type { Colours, Terminal } from "../../terminal/terminal.ts";

export interface AuditRequest extends TaskPromptOptions {
  /** Folder with one folder per task, or `hf:owner/dataset`. Default: the task's dataset on the hub. */
  readonly data?: string;
  /** Number of documents to check. */
  readonly limit: number;
  /** Number of documents to show. */
  readonly show: number;
}

/** Audits a task with a model's configuration and tokenizer. Its weights are not loaded. */
export async function auditCheckpoint(
  source: string,
  name: string,
  request: AuditRequest,
  tasks: TaskRegistry,
  terminal: Terminal,
): Promise<TaskAudit> {
  const task = taskNamed(tasks, name, "audit task");
  const chat = chatOptions(request);
  const evaluation = task.open({
    data: dataOf(name, request.data),
    ...(request.shots !== undefined && { shots: request.shots }),
    ...(chat !== null && { chat }),
  });
  const { limit: documents, show: shown } = request;
  return auditTask(await openModelOutline(source, terminal), evaluation, { documents, shown });
}

/** @throws PeriodicEvalError `config` for a task without a known dataset, and the errors of `dataFolderOf`. */
function dataOf(task: string, data: string | undefined): string {
  if (data !== undefined) {
    const folder = dataFolderOf(task, data);
    return isHubSource(folder) ? folder : join(data, folder);
  }
  return datasetOf(task)?.source ?? dataFolderOf(task, ".");
}

export function auditOutput(report: TaskAudit, { bold, dim, magenta, green, yellow, cyan }: Colours): string {
  return auditText(report, {
    title: bold,
    dim,
    special: magenta,
    right: green,
    warning: yellow,
    note: cyan,
    good: green,
  });
}
