/**
 * Limits per connection, per address and in total, for every HTTP server of Parley. A request with an incomplete
 * head, body or upgrade is cut after `headMs` and `requestMs` at the latest; only a signed-in client's file may
 * take longer.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { sourceOf } from './request-guard.ts';

export type ConnectionLimits = {
  /** For a request's head, from the start of the connection or the end of its last request, ms. */
  readonly headMs: number;
  /** For a request's body, from the end of its head, ms. */
  readonly requestMs: number;
  /** For a file of a signed-in client: in total, and without receiving any byte, ms. */
  readonly uploadMs: number;
  readonly uploadIdleMs: number;
  /** How often connections are checked, ms. */
  readonly checkMs: number;
  /** How long a connection without a request is kept, ms. */
  readonly idleMs: number;
  /** Maximum connections per address, and in total. Those over the limit are closed unanswered. */
  readonly perSource: number;
  readonly inTotal: number;
};

export const connectionLimits: ConnectionLimits = {
  headMs: 10_000,
  requestMs: 15_000,
  uploadMs: 1_800_000,
  uploadIdleMs: 15_000,
  checkMs: 2_000,
  idleMs: 10_000,
  perSource: 128,
  inTotal: 1_024,
};

/** Converts the limits to the options of `http.createServer`. */
export function serverOptionsOf(limits: ConnectionLimits = connectionLimits) {
  return {
    headersTimeout: Math.min(limits.headMs, limits.requestMs),
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
    keepAliveTimeout: limits.idleMs,
    maxHeaderSize: 16 * 1024,
  };
}

/** Bounds the connections of a server. A proxy's connections serve many people, so they only count in total. */
export function limitConnections(
  server: Server,
  {
    limits = connectionLimits,
    isProxy = () => false,
  }: {
    readonly limits?: ConnectionLimits;
    readonly isProxy?: (address: string) => boolean;
  } = {},
): void {
  const open = new Map<string, number>();
  server.maxConnections = limits.inTotal;
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    if (isProxy(address)) return;
    const source = sourceOf(address);
    const count = (open.get(source) ?? 0) + 1;
    if (count > limits.perSource) return void socket.destroy();
    open.set(source, count);
    socket.once('close', () => {
      const left = (open.get(source) ?? 1) - 1;
      if (left === 0) open.delete(source);
      else open.set(source, left);
    });
  });
}
