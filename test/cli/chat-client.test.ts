import { createServer } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { ChildView } from '#contracts/child.ts';
import { ParleyError } from '#contracts/errors.ts';
import { plainText } from '#contracts/formatted-text.ts';
import { partKey } from '#contracts/ids.ts';
import { terminalRoute } from '../../channels/terminal/ids.ts';
import { runChat } from '../../src/cli/chat-client.ts';
import type { TaskActivity } from '../../src/contracts/task.ts';
import { aNode, aTask } from '../browser/some-tasks.ts';
import { aTerminalHost } from '../channels/terminal/terminal-setup.ts';
import { patienceMs } from '../support/patience.ts';
import { createSessionDouble, type SessionDouble } from '../support/session-double.ts';

const route = terminalRoute('main');

describe('the chat client', () => {
  let session: SessionDouble;
  let host: Awaited<ReturnType<typeof aTerminalHost>>;
  let adapter: ChannelAdapter;
  beforeEach(async () => {
    session = createSessionDouble();
    host = await aTerminalHost(session.timeline);
    adapter = host.newAdapter();
    session.onStored = ({ event }) => {
      if (event.kind !== 'message') return;
      session.say(route, { text: `you said ${event.text}` });
      session.setState(event.messageId, 'answered');
    };
  });
  afterEach(async () => {
    await adapter.stop();
    await host.close();
  });

  describe('in a pipe', () => {
    const start = (options: { patienceMs?: number; socketPath?: string } = {}) => {
      const input = new PassThrough();
      const output = collector();
      const errors = collector();
      const code = runChat({
        mediaDir: '/media',
        socketPath: host.socketPath,
        input,
        output: output.stream,
        errors: errors.stream,
        ...options,
      });
      return { input, output, errors, code };
    };

    it('sends each line, prints the answers and ends', async () => {
      await adapter.start(session.intake);
      session.say(route, { text: 'from yesterday' });
      const chat = start();
      chat.input.end('one\n\ntwo\n');
      expect(await chat.code).toBe(0);
      expect(chat.output.text()).toBe('you said one\nyou said two\n');
    });

    it('prints the name, the size and the path of a file, and nothing that acts on the terminal', async () => {
      await adapter.start(session.intake);
      const name = '\u001b]0;pwned\u0007a\n/bin/sh\r\u202efdp.\u001b[2J';
      const file = { name, mimeType: 'text/plain', stored: '../../sent-1\n.01234567', sizeBytes: 12_345 };
      session.onStored = ({ event }) => {
        if (event.kind !== 'message') return;
        session.say(route, { text: 'here', file });
        session.say(route, { text: '', file: { name: 'old.txt', mimeType: 'text/plain', stored: 'x' } });
        session.setState(event.messageId, 'answered');
      };
      const chat = start();
      chat.input.end('go\n');
      expect(await chat.code).toBe(0);
      expect(chat.output.text()).toBe(
        'here\n]0;pwned a /bin/sh fdp. [2J, 12 kB: /media/sent-1 .01234567\nold.txt (no longer kept)\n',
      );
    });

    it.each(['is late', 'is lost'])('prints the answer to a command if the first read %s', async (fate) => {
      session.decide = () => ({ kind: 'command', command: 'status' });
      session.onStored = () => void session.say(route, { text: 'all is well', author: { kind: 'notice' } });
      let reads = 0;
      const slow = await aTerminalHost({
        ...session.timeline,
        read: async (...asked) => {
          const items = await session.timeline.read(...asked);
          reads += 1;
          if (reads > 1) return items;
          // Long enough to expose a command that doesn't wait for it.
          await new Promise((resolve) => setTimeout(resolve, 100));
          if (fate === 'is late') return items;
          throw new ParleyError('store_unavailable', 'The store is away.');
        },
      });
      const slowAdapter = slow.newAdapter();
      await slowAdapter.start(session.intake);
      const chat = start({ socketPath: slow.socketPath });
      chat.input.end('/status\n');
      expect(await chat.code).toBe(0);
      expect(chat.output.text()).toBe('all is well\n');
      await slowAdapter.stop();
      await slow.close();
    });

    it('does not split a message at a line separator, neither sent nor received', async () => {
      await adapter.start(session.intake);
      const chat = start();
      chat.input.end('a\u2028b\u2029c\r\nd');
      expect(await chat.code).toBe(0);
      expect(chat.output.text()).toBe('you said a\u2028b\u2029c\nyou said d\n');
      expect(session.stored).toHaveLength(2);
    });

    it('refuses a line that is too long and sends the next one', async () => {
      await adapter.start(session.intake);
      const chat = start();
      chat.input.end(`${'x'.repeat(300_000)}\nok\n`);
      expect(await chat.code).toBe(0);
      expect(chat.output.text()).toBe('you said ok\n');
      expect(chat.errors.text()).toBe('A message can have at most 32000 characters.\n');
    });

    it('reconnects after a frame that it cannot read', async () => {
      let connections = 0;
      const server = createServer((socket) => {
        connections += 1;
        const answer =
          connections === 1
            ? '{"type":"of a later version"}\n'
            : '{"type":"items","items":[]}\n{"type":"standing","hellos":2}\n';
        socket.on('data', () => socket.write(answer));
        socket.on('error', () => undefined);
      });
      await new Promise<void>((resolve) => server.listen(host.socketPath, resolve));
      const chat = start();
      chat.input.end();
      expect(await chat.code).toBe(0);
      expect(connections).toBe(2);
      await new Promise((resolve) => server.close(resolve));
    });

    it('waits for the gateway to start and for the end of each message', async () => {
      session.onStored = ({ event }) => {
        if (event.kind !== 'message') return;
        session.setState(event.messageId, 'taken');
        setTimeout(() => {
          session.say(route, { text: 'after a while' });
          session.setState(event.messageId, 'answered');
        }, 150);
      };
      const chat = start();
      chat.input.end('slow\n');
      await adapter.start(session.intake);
      expect(await chat.code).toBe(0);
      expect(chat.output.text()).toBe('after a while\n');
    });

    it('sends a line once although the store was unavailable and the connection ended', async () => {
      session.isAway = true;
      await adapter.start(session.intake);
      const chat = start();
      chat.input.end('keep me\n');
      setTimeout(() => {
        session.isAway = false;
      }, 300);
      expect(await chat.code).toBe(0);
      expect(chat.output.text()).toBe('you said keep me\n');
      expect(session.stored).toHaveLength(1);
    });

    it('ends even if the acknowledgements of its frames were lost', async () => {
      const known = new Set<string>();
      const accept: typeof session.intake.accept = async (batch) => {
        const acceptances = await session.intake.accept(batch);
        const [first] = batch.events;
        if (first === undefined || known.has(first.eventKey)) return acceptances;
        known.add(first.eventKey);
        throw new ParleyError('store_unavailable', 'It is stored, which nobody hears.');
      };
      session.decide = ({ event }) =>
        event.kind === 'message' && event.text === '/status'
          ? { kind: 'command', command: 'status' }
          : { kind: 'refused', reason: 'rate-limited' };
      session.onStored = () => undefined;
      await adapter.start({ ...session.intake, accept });
      const chat = start();
      chat.input.end('/status\nmore\n');
      expect(await chat.code).toBe(0);
      expect(chat.errors.text()).toBe('refused: rate-limited\n');
    });

    it('ends even if its message ended while it was disconnected', async () => {
      session.onStored = ({ event }) => {
        if (event.kind === 'message') session.setState(event.messageId, 'taken');
      };
      await adapter.start(session.intake);
      const chat = start();
      chat.input.end('slow\n');
      await expect.poll(() => session.stored.length, { timeout: patienceMs }).toBe(1);
      // A later message is shown, so the client is past its own message.
      session.say(route, { text: 'still here' });
      await expect.poll(() => chat.output.text(), { timeout: patienceMs }).toContain('still here');
      await adapter.stop();
      const { event } = session.stored[0] as (typeof session.stored)[number];
      if (event.kind === 'message') session.setState(event.messageId, 'answered');
      await adapter.start(session.intake);
      expect(await chat.code).toBe(0);
    });

    it('prints no control characters from a message', async () => {
      session.onStored = ({ event }) => {
        if (event.kind !== 'message') return;
        session.say(route, { text: 'a\u001b[2Jb\u001b]0;title\u0007c\u202ed\be' });
        session.setState(event.messageId, 'answered');
      };
      await adapter.start(session.intake);
      const chat = start();
      chat.input.end('x\n');
      await chat.code;
      expect(chat.output.text()).toBe('abcde\n');
    });

    it('says how a message without an answer ended', async () => {
      session.onStored = ({ event }) => {
        if (event.kind === 'message') session.setState(event.messageId, 'failed');
      };
      await adapter.start(session.intake);
      const chat = start();
      chat.input.end('x\n');
      expect(await chat.code).toBe(0);
      expect(chat.errors.text()).toBe('failed\n');
    });

    it('gives up with advice if no gateway runs', async () => {
      const chat = start({ patienceMs: 50 });
      chat.input.end('x\n');
      expect(await chat.code).toBe(1);
      expect(chat.errors.text()).toContain('npm start');
    });
  });

  describe('on a screen', () => {
    const start = (size = { columns: 40, rows: 20 }) => {
      const input = Object.assign(new PassThrough(), { isTTY: true as const });
      const output = collector();
      const stream = Object.assign(output.stream, { isTTY: true as const, ...size });
      const code = runChat({
        mediaDir: '/media',
        socketPath: host.socketPath,
        input,
        output: stream,
        errors: output.stream,
      });
      return { input, output, code };
    };
    const shows = (chat: ReturnType<typeof start>, text: string) =>
      expect.poll(() => chat.output.text(), { timeout: patienceMs }).toContain(text);

    it('shows history, tools, the growing answer and the final answer once', async () => {
      session.say(route, { text: 'from yesterday' });
      session.onStored = () => undefined;
      await adapter.start(session.intake);
      const chat = start();
      await shows(chat, 'from yesterday');
      chat.input.write('hello\r');
      await expect.poll(() => session.stored.length).toBe(1);
      session.emit(route, { kind: 'tool', runId: 'r', name: 'glob', state: 'started' });
      await shows(chat, '⋯ glob');
      await adapter.preview?.draft(route, 1, plainText('growing'), AbortSignal.timeout(patienceMs));
      await shows(chat, 'growing');
      await adapter.send(
        { key: partKey('p1'), route, content: { kind: 'text', text: plainText('the answer') } },
        AbortSignal.timeout(patienceMs),
      );
      session.say(route, { text: 'the answer', messageId: 'p1' });
      session.say(route, { text: 'and more' });
      await shows(chat, 'and more');
      expect(chat.output.text().split('the answer')).toHaveLength(2);
      chat.input.end();
      expect(await chat.code).toBe(0);
    });

    it('shows the growing output of a tool until it ends, and that earlier messages are summarized', async () => {
      session.onStored = () => undefined;
      await adapter.start(session.intake);
      const chat = start({ columns: 80, rows: 20 });
      const call = { runId: 'r', callId: 'c', name: 'build' };
      const output = (text: string) => session.emit(route, { kind: 'output', runId: 'r', callId: 'c', text });
      await expect.poll(() => session.watching()).toBe(1);
      for (const progress of [0, 0.5])
        session.emit(route, { kind: 'compaction', runId: 'r', state: 'started', progress });
      session.emit(route, { kind: 'compaction', runId: 'r', state: 'done' });
      session.emit(route, { kind: 'tool', ...call, state: 'started' });
      await shows(chat, '⋯ build');
      output('step 1');
      await shows(chat, 'step 1');
      output('step 1\nstep 2');
      await shows(chat, 'step 2');
      session.emit(route, { kind: 'tool', ...call, state: 'done' });
      await expect
        .poll(() => screenOf(chat.output.text(), 80), { timeout: patienceMs })
        .not.toContain('step 2');
      const printed = screenOf(chat.output.text(), 80);
      expect(printed).toContain('  ⋯ Parley has summarized earlier messages');
      expect(printed.filter((row) => row.includes('is summarizing'))).toHaveLength(1);
      chat.input.end();
      expect(await chat.code).toBe(0);
    });

    it('shows a task as a line whenever a subtask has ended, and not its peers', async () => {
      await adapter.start(session.intake);
      const node = aNode(1_000);
      const peer = { depth: 1, name: 'a', agentId: 'main', createdAt: 1, tokens: 0, cost: 0 } as const;
      const children: readonly ChildView[] = [{ ...peer, id: 'p', state: 'running', isPeer: true }];
      const task = aTask([node('a', 'dispatched'), node('b', 'pending')], {
        title: 'compare',
        createdAt: 1_000,
      });
      const old = aTask([], { id: 'old', title: 'old', state: 'done', endedAt: 2_000 });
      const stands = (over: Partial<TaskActivity>) => {
        session.standing = { children, tasks: [old, { ...task, ...over }] };
        session.emit(route, { kind: 'changed' });
      };
      const chat = start();
      stands({});
      await shows(chat, '⋯ task “compare”: 0 of 2 subtasks done, a runs');
      stands({ subtasks: [node('a', 'done'), node('b', 'pending')] });
      await shows(chat, '⋯ task “compare”: 1 of 2 subtasks done');
      stands({ subtasks: [node('a', 'done'), node('b', 'dispatched')] });
      stands({ subtasks: [node('a', 'done'), node('b', 'done')], state: 'done', endedAt: 13_000 });
      await shows(chat, '⋯ task “compare”: done in 12 s, 2 of 2 subtasks done');
      expect(chat.output.text()).not.toContain('sub-agent');
      expect(chat.output.text()).not.toContain('old');
      expect(chat.output.text()).not.toContain('b runs');
      chat.input.end();
      await chat.code;
    });

    it('shows each sub-agent as a line whenever its state changes', async () => {
      session.say(route, { text: 'from yesterday' });
      const old = { id: 'o', depth: 1, name: 'old', agentId: 'main', createdAt: 1, tokens: 0, cost: 0 };
      const child = { ...old, id: 'c', name: 'look it up', startedAt: 1_000 };
      const stands = (...children: readonly ChildView[]) => {
        session.standing = { children: [{ ...old, state: 'done' }, ...children] };
        session.emit(route, { kind: 'changed' });
      };
      await adapter.start(session.intake);
      const chat = start();
      stands({ ...child, state: 'running' });
      await shows(chat, '⋯ sub-agent “look it up”: running');
      const end = { state: 'done', status: 'completed', endedAt: 13_000, tokens: 3400 } as const;
      stands({ ...child, ...end }, { ...child, id: 'd', depth: 2, state: 'queued' });
      await shows(chat, 'sub-agent “look it up”: done in 12 s,');
      await shows(chat, '  sub-agent “look it up”: queued');
      expect(chat.output.text()).not.toContain('old');
      expect(chat.output.text().split('running')).toHaveLength(2);
      session.sessionName = 'that of another agent';
      session.emit(route, { kind: 'changed' });
      await shows(chat, 'This conversation continues in another');
      expect(chat.output.text().split('from yesterday')).toHaveLength(2);
      chat.input.end();
      await chat.code;
    });

    it('shows what is sent during an answer above it, wraps words and completes commands', async () => {
      session.onStored = () => undefined;
      await adapter.start(session.intake);
      const chat = start();
      const rows = () => screenOf(chat.output.text(), 40);
      const untilRows = (...expected: readonly string[]) =>
        expect.poll(() => rows().slice(-expected.length), { timeout: patienceMs }).toEqual(expected);
      await expect.poll(() => session.watching()).toBe(1);
      chat.input.write('tell me a story\r');
      await expect.poll(() => session.stored.length).toBe(1);
      await adapter.preview?.draft(
        ...[route, 1, plainText('Once upon a time there was a growing answer')],
        AbortSignal.timeout(patienceMs),
      );
      await untilRows('› tell me a story', 'Once upon a time there was a growing', 'answer', '›');
      chat.input.write('a short one\r');
      await untilRows('› a short one', 'Once upon a time there was a growing', 'answer', '›');
      expect(rows()).toContain('› tell me a story');
      session.say(route, { text: 'The story of the bear that could not stop eating honey.' });
      await untilRows('● The story of the bear that could not', 'stop eating honey.', '', '›');
      chat.input.write('/who\t');
      await untilRows('› /whoami');
      chat.input.write('\u0003\u0003');
      expect(await chat.code).toBe(0);
    });

    it('sends pasted text of several lines as one message', async () => {
      session.onStored = () => undefined;
      await adapter.start(session.intake);
      const chat = start();
      await expect.poll(() => session.watching()).toBe(1);
      // Cut in the middle of an escape sequence, as a slow connection may deliver it.
      chat.input.write('see: \u001b[2');
      chat.input.write('00~one\r\ntwo\u2028three\n\u001b[201~');
      chat.input.write('\r');
      await expect.poll(() => session.stored.length).toBe(1);
      expect(session.stored[0]?.event).toMatchObject({ kind: 'message', text: 'see: one\ntwo\nthree\n' });
      chat.input.end();
      await chat.code;
    });

    it("writes lines instead of columns if the terminal's size is unknown", async () => {
      session.say(route, { text: 'from yesterday' });
      await adapter.start(session.intake);
      const chat = start({ columns: 0, rows: 0 });
      await shows(chat, 'from yesterday');
      chat.input.write('hello\r');
      await expect.poll(() => session.stored.length).toBe(1);
      chat.input.end();
      expect(await chat.code).toBe(0);
      expect(chat.output.text()).not.toContain('Infinity');
    });

    it('asks to stop on the first Ctrl-C and leaves on the second', async () => {
      await adapter.start(session.intake);
      const chat = start();
      await expect.poll(() => session.watching()).toBe(1);
      chat.input.write('\u0003');
      await expect.poll(() => session.stored.map(({ event }) => event.kind)).toEqual(['stop']);
      chat.input.write('\u0003');
      expect(await chat.code).toBe(0);
    });
  });
});

/** Returns the rows of a screen after this output, without colors and trailing spaces. */
function screenOf(output: string, columns: number): readonly string[] {
  const rows: string[][] = [[]];
  let [y, x] = [0, 0];
  const row = () => (rows[y] ??= []);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal obeys
  for (const [piece, count, order] of output.matchAll(/\u001b\[\??(\d*)([A-Za-z])|\p{Any}/gu)) {
    const by = Number(count || 1);
    if (order === 'A') y = Math.max(0, y - by);
    else if (order === 'C') x += by;
    else if (order === 'D') x = Math.max(0, x - by);
    else if (order === 'G') x = by - 1;
    else if (order === 'J') rows.splice(y, rows.length, row().slice(0, x));
    else if (order === 'K') row().length = Math.min(x, row().length);
    else if (order !== undefined) continue;
    else if (piece === '\r') x = 0;
    else if (piece === '\n') [y, x] = [y + 1, 0];
    else {
      if (x === columns) [y, x] = [y + 1, 0];
      row()[x] = piece;
      x += 1;
    }
    row();
  }
  return rows.map((cells) =>
    Array.from(cells, (cell) => cell ?? ' ')
      .join('')
      .trimEnd(),
  );
}

function collector() {
  const stream = new PassThrough();
  let text = '';
  stream.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return { stream, text: () => text };
}
