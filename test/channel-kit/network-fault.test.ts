import { createServer, type Server } from 'node:net';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { neverLeft, noAnswerFrom } from '#channel-kit/network-fault.ts';
import { outboundFetch } from '../../src/http/outbound-fetch.ts';

const clients: readonly (readonly [string, (url: string) => Promise<unknown>])[] = [
  ['fetch', (url) => fetch(url)],
  ['the outbound fetch', (url) => outboundFetch(url)],
  ['undici', (url) => request(url)],
];

let cutting: Server;
let closedPort = 0;

beforeAll(async () => {
  cutting = createServer((socket) => socket.once('data', () => socket.destroy()));
  await new Promise<void>((resolve) => cutting.listen(0, '127.0.0.1', resolve));
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
  closedPort = portOf(gone);
  await new Promise((resolve) => gone.close(resolve));
});

afterAll(() => void cutting.close());

describe.each(clients)('requests by %s', (_name, call) => {
  it('knows that a request never left if nothing listens', async () => {
    const error = await faultOf(call(`http://127.0.0.1:${closedPort}/`));
    expect(neverLeft(error)).toBe(true);
    expect(noAnswerFrom('Parley', error)).toBe('no answer from Parley (ECONNREFUSED)');
  });

  it('knows that a request never left if nothing listens at any of several addresses', async () => {
    expect(neverLeft(await faultOf(call(`http://localhost:${closedPort}/`)))).toBe(true);
  });

  it('assumes that an interrupted request may have arrived', async () => {
    const error = await faultOf(call(`http://127.0.0.1:${portOf(cutting)}/secret-token`));
    expect(neverLeft(error)).toBe(false);
    expect(noAnswerFrom('Parley', error)).not.toContain('secret-token');
  });
});

it('finds the fault where a library wraps it', () => {
  const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
  expect(neverLeft(Object.assign(new Error('wrapped'), { error: new Error('x', { cause: refused }) }))).toBe(
    true,
  );
});

it('knows that a request never left if no address was reached, even after a timeout', () => {
  const connect = (code: string) => Object.assign(new Error(`connect ${code}`), { code, syscall: 'connect' });
  // As Node.js builds it: the code is that of the first attempt, and nothing says that it came from a connect.
  const all = (...attempts: readonly Error[]) =>
    Object.assign(new AggregateError(attempts), { code: (attempts[0] as NodeJS.ErrnoException).code });
  const tooFar = all(connect('ETIMEDOUT'), connect('ENETUNREACH'));
  const byUndici = Object.assign(new Error('late', { cause: tooFar }), { code: 'UND_ERR_CONNECT_TIMEOUT' });
  for (const fault of [new TypeError('fetch failed', { cause: tooFar }), byUndici])
    expect(neverLeft(fault)).toBe(true);
  const reset = Object.assign(new Error('read'), { code: 'ETIMEDOUT', syscall: 'read' });
  expect(neverLeft(all(reset, connect('ENETUNREACH')))).toBe(false);
});

it('assumes that a request arrived if the fault does not say otherwise', () => {
  const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' });
  const reset = Object.assign(new Error('read'), { code: 'ECONNRESET' });
  expect([undefined, 'no', new Error('?'), new AggregateError([refused, reset])].map(neverLeft)).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function faultOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  );
}
