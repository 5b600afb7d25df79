/**
 * `node:http` and `node:https` without reading what they only hand on. An `import` of `node:http` reads each of its names,
 * and its `WebSocket` is a getter that loads Node's own undici: 30 ms of each start, for something that a gateway
 * needs with its first model's SDK at the earliest, and the demo never.
 */
const http = process.getBuiltinModule('node:http');

/** Creates a server, as `node:http` does. */
export const createServer = http.createServer;
export const requestHttp = http.request;
export const requestHttps = process.getBuiltinModule('node:https').request;
