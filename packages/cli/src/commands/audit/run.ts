import { auditTask, taskNamed, type TaskAudit, type TaskRegistry } from "@periodic-eval/tasks";
import { join } from "node:path";
import { outlineModel } from "../../config/outline-model.ts";
import { chatOf, type TaskAsking } from "../../config/task-options.ts";
import { checkDataFolder, dataFolderOf } from "../../config/task-data.ts";
import type { Terminal } from "../../terminal/terminal.ts";

export interface AuditRequest extends TaskAsking {
  /** The folder with a folder for each task. */
  readonly data: string;
  /** Documents to look at, and of these to show. */
  readonly limit: number;
  readonly show: number;
}

/** Audits a task on what a model's folder tells of it; no weights are read. */
export async function auditCheckpoint(
  source: string,
  name: string,
  request: AuditRequest,
  tasks: TaskRegistry,
  terminal: Terminal,
): Promise<TaskAudit> {
  const task = taskNamed(tasks, name, "audit task");
  checkDataFolder(request.data);
  const chat = chatOf(request);
  const evaluation = task.open({
    data: join(request.data, dataFolderOf(name, request.data)),
    ...(request.shots !== undefined && { shots: request.shots }),
    ...(chat !== null && { chat }),
  });
  const { limit: documents, show: shown } = request;
  return auditTask(await outlineModel(source, terminal), evaluation, { documents, shown });
}
