import { inMemory, type CausalLM } from "@periodic-eval/core/tfjs";
import { outlineCausalLM } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { auditTask, taskNamed, type TaskAudit, type TaskRegistry } from "@periodic-eval/tasks";
import { join } from "node:path";
import { loadingLine } from "./loading-line.ts";
import { chatOf, type TaskAsking } from "./task-asking.ts";
import { checkDataFolder, dataFolderOf } from "./task-data.ts";
import type { Terminal } from "./terminal.ts";

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
  const { onDownload, close } = loadingLine(terminal);
  try {
    const tokenizer = await loadTokenizer(source, { onDownload });
    // Nothing is asked of it, so that its configuration is enough.
    const model = (await outlineCausalLM(source, { onDownload })) as unknown as CausalLM;
    const { limit: documents, show: shown } = request;
    return await auditTask(inMemory(model, tokenizer), evaluation, { documents, shown });
  } finally {
    close();
  }
}
