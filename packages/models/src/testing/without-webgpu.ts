import { useBackend } from "../backend/use-backend.ts";

/** The error that prevents tests on webgpu; null if webgpu works, which is then the current backend. */
export const withoutWebGPU: string | null = await useBackend({ backend: "webgpu" }).then(
  () => null,
  ({ message }: Error) => message,
);
