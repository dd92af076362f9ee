import { useBackend } from "../backend/use-backend.ts";

/** Why tests on webgpu are skipped here, and what helps; null where they are not. It is left as the backend. */
export const withoutWebGPU: string | null = await useBackend({ backend: "webgpu" }).then(
  () => null,
  ({ message }: Error) => message,
);
