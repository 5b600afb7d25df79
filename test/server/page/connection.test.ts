import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { pageModule } from './page-module.ts';

type Connection = { submit(entry: object): void; close(): void };
type Module = { createConnection(options: object): Connection };

const sockets: FakeSocket[] = [];

class FakeSocket {
  static readonly OPEN = 1;
  readonly readyState = FakeSocket.OPEN;
  onopen?: () => void;
  onmessage?: (event: { data: string }) => void;
  onclose?: () => void;
  readonly send = () => undefined;
  readonly close = () => undefined;

  constructor() {
    sockets.push(this);
  }
}

const nowhere = { addEventListener: () => undefined, removeEventListener: () => undefined };

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('WebSocket', FakeSocket);
  vi.stubGlobal('window', nowhere);
  vi.stubGlobal('document', nowhere);
});
afterEach(() => {
  sockets.length = 0;
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it('gives up a socket that has fallen silent, but not one whose first frame takes long', async () => {
  const { createConnection } = await pageModule<Module>('connection.js');
  const states: string[] = [];
  const connection = createConnection({
    ...{
      url: 'ws://parley',
      conversation: 'main',
      resumeFrom: () => ({ after: 0 }),
      onFrame: () => undefined,
    },
    outbox: { list: () => [], put: () => undefined, remove: () => undefined },
    onState: (state: string) => states.push(state),
  });
  const [first] = sockets;
  first?.onopen?.();
  vi.advanceTimersByTime(600_000);
  const hear = () => first?.onmessage?.({ data: '{"type":"items","items":[]}' });
  for (const _ of [1, 2, 3, 4]) {
    hear();
    vi.advanceTimersByTime(60_000);
  }
  expect(states).toEqual(['connecting', 'open']);
  vi.advanceTimersByTime(30_000);
  expect(states).toEqual(['connecting', 'open', 'lost', 'connecting']);
  expect(sockets).toHaveLength(2);
  connection.close();
});
