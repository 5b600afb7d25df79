import { describe, expect, it } from 'vitest';
import { AcpRelay } from '../../src/cli/acp-relay.ts';

const line = (message: object) => JSON.stringify({ jsonrpc: '2.0', ...message });
const initialize = line({ id: 0, method: 'initialize', params: { protocolVersion: 1 } });
const prompt = line({ id: 1, method: 'session/prompt', params: { sessionId: 's', prompt: [] } });
const question = (id: number) => line({ id, method: 'session/request_permission', params: {} });
const chunk = (text: string) =>
  line({
    method: 'session/update',
    params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content: { text } } },
  });
const read = (text: string | undefined) => JSON.parse(text ?? 'null');

/** Returns a relay whose editor has begun and waits for the answer to a prompt. */
function busyRelay(): AcpRelay {
  const relay = new AcpRelay();
  relay.connected();
  relay.fromEditor(initialize);
  relay.fromGateway(line({ id: 0, result: {} }));
  relay.fromEditor(prompt);
  return relay;
}

describe('the connection of an editor', () => {
  it('sends open requests again over the next connection, with what the editor has of the answer', () => {
    const relay = busyRelay();
    relay.fromGateway(chunk('Half an'));
    relay.lost();
    const again = relay.connected().map(read);
    expect(again.map(({ method }) => method)).toEqual(['initialize', 'session/prompt']);
    expect(again[1].params._meta).toEqual({ parley: { shown: 'Half an' } });
    // The editor has the answer to `initialize` already.
    expect(relay.fromGateway(line({ id: 0, result: {} }))).toBeUndefined();
    expect(read(relay.fromGateway(line({ id: 1, result: {} })))).toMatchObject({ id: 1 });
    expect(relay.hasOpen).toBe(false);
  });

  it('passes on no answer to a question of an earlier connection', () => {
    const relay = busyRelay();
    const first = read(relay.fromGateway(question(0))).id;
    expect(relay.lost().map(read)).toMatchObject([
      { method: '$/cancel_request', params: { requestId: first } },
    ]);
    relay.connected();
    // The gateway counts from 0 again, but asks about something else.
    const second = read(relay.fromGateway(question(0))).id;
    expect(second).not.toBe(first);
    expect(relay.fromEditor(line({ id: first, result: { outcome: 'yes' } }))).toEqual([]);
    expect(relay.fromEditor(line({ id: second, result: { outcome: 'no' } })).map(read)).toMatchObject([
      { id: 0, result: { outcome: 'no' } },
    ]);
  });

  it('keeps what the editor says without a connection', () => {
    const relay = new AcpRelay();
    const cancel = line({ method: 'session/cancel', params: { sessionId: 's' } });
    expect([initialize, prompt, cancel].flatMap((each) => relay.fromEditor(each))).toEqual([]);
    expect(relay.connected().map(read)).toEqual([initialize, prompt, cancel].map(read));
  });

  it('forgets what the editor has once a tool was called or another prompt begins', () => {
    const relay = busyRelay();
    relay.fromGateway(chunk('I call a tool.'));
    const update = { sessionUpdate: 'tool_call', toolCallId: '1', title: 'list' };
    relay.fromGateway(line({ method: 'session/update', params: { sessionId: 's', update } }));
    relay.fromGateway(chunk('\n\nIt '));
    relay.lost();
    expect(read(relay.connected()[1]).params._meta).toEqual({ parley: { shown: 'It ' } });
  });
});
