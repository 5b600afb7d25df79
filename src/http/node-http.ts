/**
 * `node:http` and `node:https` without their re-exports. An `import` of `node:http` reads each of its names, and its
 * `WebSocket` is a getter that loads Node's own undici. That costs 30 ms of each start for something that a gateway
 * needs with its first model's SDK at the earliest, and that the demo never needs.
 */
const http = process.getBuiltinModule('node:http');

/** Creates a server, like `node:http`. */
export const createServer = http.createServer;

/** Sends a request, like `node:http`. */
export const request = http.request;
