/** Name of the environment variable with the token of gateways and services, its only source. */
export const tokenEnv = "OPENCLAW_GATEWAY_TOKEN";
