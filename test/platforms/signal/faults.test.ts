/** The faults that tests inject, as seen by a caller. */
import { once } from 'node:events';
import { setTimeout as delay, setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { patienceMs } from '../../support/patience.ts';
import { againstSwagger } from './fairness.ts';
import type { Fault } from './faults.ts';
import { type SignalServer, startSignalServer } from './server.ts';
import type { Person } from './types.ts';

let server: SignalServer;
let ada: Person;

beforeEach(async () => {
  server = await startSignalServer({ release: 'head' });
  ada = server.world.addPerson({ name: 'Ada' });
});
afterEach(async () => {
  expect(againstSwagger(server)).toEqual([]);
  await server.close();
});

const send = (recipients: readonly string[] = [ada.uuid], signal = AbortSignal.timeout(patienceMs)) =>
  fetch(`${server.url}/v2/send`, {
    method: 'POST',
    body: JSON.stringify({ number: server.number, recipients, message: 'hello' }),
    signal,
  });

it.each<[string, Fault, boolean]>([
  ['a cut connection', { kind: 'cut' }, false],
  ['a dropped answer', { kind: 'drop-answer' }, true],
])('%s ends the call without a status', async (_, fault, isApplied) => {
  server.fault(fault, { path: '/v2/send' });
  await expect(send()).rejects.toThrow('fetch failed');
  expect(server.lines(ada)).toHaveLength(isApplied ? 1 : 0);
  expect(server.calls[0]).toMatchObject({ answered: false, fault: fault.kind });
  expect((await send()).status).toBe(201);
});

it.each([true, false])('a hanging call is never answered; applied: %s', async (isApplied) => {
  server.fault({ kind: 'hang', isApplied });
  const patience = new AbortController();
  const sent = send([ada.uuid], patience.signal).catch(() => 'gave up');
  await server.waitFor(() => server.calls.length === 1 && (!isApplied || server.sent.length === 1));
  expect(await Promise.race([sent, delay(150)])).toBeUndefined();
  patience.abort();
  expect(await sent).toBe('gave up');
  expect(server.lines(ada)).toHaveLength(isApplied ? 1 : 0);
  expect(server.sent).toHaveLength(isApplied ? 1 : 0);
});

it('a refusal, a page of a proxy and a slow answer', async () => {
  server.fault({ kind: 'refuse', status: 400, error: 'process killed as timeout reached' });
  server.fault({ kind: 'page', status: 502 });
  server.fault({ kind: 'slow', ms: 200 });
  const refused = await send();
  expect([refused.status, await refused.json()]).toEqual([
    400,
    { error: 'process killed as timeout reached' },
  ]);
  const page = await send();
  expect([page.status, page.headers.get('content-type')]).toEqual([502, 'text/html']);
  const slow = send();
  expect(await Promise.race([slow, pause(50, 'it takes its time')])).toBe('it takes its time');
  expect((await slow).status).toBe(201);
  expect(server.lines(ada)).toHaveLength(1);
  expect(server.refusals).toEqual([]);
});

it('meets the calls it is meant for, as often as it says', async () => {
  server.fault({ kind: 'page', status: 503 }, { path: '/v1/health', times: 2 });
  const health = async () => (await fetch(`${server.url}/v1/health`)).status;
  expect((await send()).status).toBe(201);
  expect([await health(), await health(), await health()]).toEqual([503, 503, 204]);
  server.fault({ kind: 'cut' });
  server.clearFaults();
  expect(await health()).toBe(204);
});

it('handshakes fail where the fault names their path', async () => {
  server.fault({ kind: 'page', status: 502 });
  server.fault({ kind: 'page', status: 503 }, { path: '/v1/receive' });
  server.fault({ kind: 'cut' }, { path: '/v1/receive' });
  const url = `${server.url.replace('http', 'ws')}/v1/receive/${server.number}`;
  const failure = async () => String((await once(new WebSocket(url), 'error'))[0]);
  expect(await failure()).toContain('Unexpected server response: 503');
  expect(await failure()).toContain('socket hang up');
  const socket = new WebSocket(url);
  await once(socket, 'open');
  socket.terminate();
});

it('part of a group is not reached', async () => {
  const bob = server.world.addPerson({ name: 'Bob', number: null });
  const team = server.world.addGroup({ name: 'Team', members: [ada, bob, server.account] });
  server.fault({ kind: 'partial', failed: { [bob.uuid]: 'NETWORK_FAILURE' } });
  const answer = await send([team.id]);
  expect(answer.status).toBe(201);
  expect(await answer.json()).toMatchObject([
    { errors: { recipients: [{ number: '', uuid: bob.uuid, reason: 'NETWORK_FAILURE' }] } },
  ]);
  expect(server.lines(team)).toEqual(['Parley: hello']);
});
