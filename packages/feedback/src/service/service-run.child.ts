// For service-run.test.ts: runs the harness with a service, and kills its own process after the first update, before it writes
// the step's line.
import type { HarnessConfig } from "../config/schema.ts";
import { afterUpdates } from "../engine/after-updates.test-data.ts";
import { httpEngine } from "../engine/http-engine.ts";
import { runHarness } from "../harness/run-harness.ts";

const [serviceUrl, config] = process.argv.slice(2) as [string, string];
const engine = afterUpdates(httpEngine({ serviceUrl }), () => void process.kill(process.pid, "SIGKILL"));
await runHarness(JSON.parse(config) as HarnessConfig, { engine });
