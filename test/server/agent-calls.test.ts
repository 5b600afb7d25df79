/** Bad input at the calls that give an agent messages: a clear refusal, and nothing reaches the service. */
import { connect } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { ParleyError } from '#contracts/errors.ts';
import type { AgentService } from '../../src/service/agent-service.ts';
import { someOperations } from '../support/some-operations.ts';
import { aServer, send } from './a-server.ts';

const accepted = { runId: 'r', session: 's', acceptedAt: 1 };
const fileBytes = 300_000;

async function aGateway(over: Partial<AgentService> = {}) {
  const sent = vi.fn(async (_input: unknown) => accepted);
  const agents = { send: sent, steer: sent, requestSummary: sent, ...over } as unknown as AgentService;
  const operations = { ...someOperations(), agents };
  const { server, port, token } = await aServer({ operations, maxUploadBytes: fileBytes });
  onTestFinished(server.close);
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-parley': '1' };
  const post = async (path: string, body: unknown, more: Readonly<Record<string, string>> = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await send({
      port,
      path: `/api/${path}`,
      method: 'POST',
      headers: { ...headers, ...more },
      body: text,
    });
    return { status: answer.status, error: JSON.parse(answer.body || '{}').error };
  };
  const tokenOf = async (name: string) => {
    const answer = await send({
      ...{ port, path: '/api/tokens/create', method: 'POST', headers },
      body: JSON.stringify({ name, scopes: ['operate'] }),
    });
    return (JSON.parse(answer.body) as { readonly secret: string }).secret;
  };
  return { post, sent, port, token, tokenOf };
}

const file = (data: string, name = 'a.txt') => ({ name, data });
const base64 = (bytes: number) => Buffer.alloc(bytes, 1).toString('base64');

it('takes files in base64, up to the size of one', async () => {
  const { post, sent } = await aGateway();
  const files = [file(base64(fileBytes), 'large.bin'), file('')];
  expect(await post('agent', { message: 'look', files })).toMatchObject({ status: 200 });
  const given = sent.mock.calls[0]?.[0] as { readonly files: readonly { readonly bytes: Buffer }[] };
  expect(given.files.map(({ bytes }) => bytes.length)).toEqual([fileBytes, 0]);
});

it('refuses files and settings that are not valid, and sends nothing', async () => {
  const { post, sent } = await aGateway();
  const bad: readonly object[] = [
    { files: [file('not base64!!')] },
    { files: [file('QUJD\n')] },
    { files: [file('QUI')] },
    { files: [file('QQ==QQ==')] },
    { files: [file('QUJD', '')] },
    { files: [file('QUJD', 'x'.repeat(201))] },
    { files: [{ name: 'a.txt', path: '/etc/passwd' }] },
    { files: Array.from({ length: 11 }, () => file('QUJD')) },
    { timeoutMs: 999 },
    { timeoutMs: 3_600_001 },
    { timeoutMs: '5000' },
    { prompt: '' },
    { prompt: 'x'.repeat(16_001) },
  ];
  for (const more of bad) {
    const { status, error } = await post('agent', { message: 'look', ...more });
    expect([status, error?.code], JSON.stringify(more).slice(0, 80)).toEqual([400, 'invalid_request']);
  }
  const large = await post('agent', { message: 'look', files: [file(base64(2 * fileBytes))] });
  expect([large.status, large.error.code]).toEqual([413, 'invalid_request']);
  const elsewhere = await post('agent/steer', { session: 's', message: 'x'.repeat(100_000) });
  expect(elsewhere.status).toBe(413);
  expect(sent).not.toHaveBeenCalled();
});

it('sends nothing of a request that is cut off', async () => {
  const { post, sent, port, token } = await aGateway();
  const head = `POST /api/agent HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ${token}\r\nx-parley: 1\r\ncontent-type: application/json\r\n`;
  for (const rest of [
    'content-length: 500\r\n\r\n{"message":"lo',
    'transfer-encoding: chunked\r\n\r\nff\r\n{',
  ]) {
    const socket = connect(port, '127.0.0.1');
    await new Promise<void>((resolve) => socket.write(head + rest, () => resolve()));
    socket.destroy();
  }
  expect(await post('agent', { message: 'still here' })).toMatchObject({ status: 200 });
  expect(sent).toHaveBeenCalledTimes(1);
});

it('says which session is unknown, which is busy, and whose key was reused', async () => {
  const refuse = (code: 'invalid_input' | 'key_reused') => async () => {
    throw new ParleyError(code, 'Because.');
  };
  const { post } = await aGateway({
    send: refuse('key_reused'),
    steer: refuse('invalid_input'),
    requestSummary: async () => undefined,
  });
  const asked = { session: 's', message: 'x' };
  expect(await post('agent', asked)).toEqual({
    status: 409,
    error: { code: 'key_reused', text: 'Because.' },
  });
  expect(await post('agent/steer', asked)).toEqual({
    status: 400,
    error: { code: 'invalid_input', text: 'Because.' },
  });
  expect(await post('agent/summarize', {})).toMatchObject({ status: 409, error: { code: 'not_possible' } });
});

it('keeps the keys of each token apart, and those of the owner as they are', async () => {
  const { post, sent, tokenOf } = await aGateway();
  const secrets = [await tokenOf('ann'), await tokenOf('bob')];
  for (const secret of secrets)
    for (const path of ['agent', 'agent/summarize'])
      await post(path, path === 'agent' ? { message: 'x', key: 'mine' } : { key: 'mine' }, {
        authorization: `Bearer ${secret}`,
      });
  await post('agent', { message: 'x', key: 'mine' });
  expect(sent.mock.calls.map(([input]) => (input as { readonly key: string }).key)).toEqual([
    ...['token:ann/mine', 'token:ann/mine', 'token:bob/mine', 'token:bob/mine', 'mine'],
  ]);
});

it('passes the idempotency key of the header on', async () => {
  const { post, sent } = await aGateway();
  await post('agent', { message: 'x' }, { 'idempotency-key': 'mine' });
  await post('agent/summarize', { session: 's' }, { 'idempotency-key': 'yours' });
  expect(sent.mock.calls.map(([input]) => input)).toMatchObject([{ key: 'mine' }, { key: 'yours' }]);
});
