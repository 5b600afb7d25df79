import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { Asker, CommandCall, CommandDeps, Right } from '../../src/commands/chat-command.ts';
import { chatCommands, nativeCommands, parseCommand } from '../../src/commands/list.ts';
import { hashPairingCode } from '../../src/commands/one-time-code.ts';
import { fillText, textsFor } from '../../src/texts/chat-texts.ts';

import { holds } from '../support/holds.ts';
import { commandDeps } from './support/command-deps.ts';
import { readDocumentedCommands } from './support/documented-commands.ts';

const bot = { name: 'Parley_Bot' };

const byCode = { codeHash: hashPairingCode('ABCD2345') };

const everyAsker: readonly Asker[] = (['dm', 'group'] as const).flatMap((chat) =>
  (['owner', 'member', 'guest'] as const).flatMap((authority) =>
    [true, false, undefined].map((isAdmin) => ({ chat, authority, isAdmin })),
  ),
);

function requestOf(text: string): object | undefined {
  const order = parseCommand(text, bot);
  return order && { name: order.command.name, request: order.request };
}

function budgetRequest(name: string, limit: number): object {
  return { name: 'budget', request: { name, limit } };
}

function problemOf(text: string): string | undefined {
  const { problem, values } = parseCommand(text, bot)?.problem ?? {};
  return problem && fillText(textsFor('en')[problem], values);
}

describe('chat commands', () => {
  it.each<[string, object]>([
    ['/stop', { name: 'stop', request: { isAll: false } }],
    ['/stop all', { name: 'stop', request: { isAll: true } }],
    ['/STOP All ', { name: 'stop', request: { isAll: true } }],
    ['/stop it, please!', { name: 'stop', request: { isAll: false } }],
    [' /new', { name: 'new', request: {} }],
    ['/reset', { name: 'reset', request: {} }],
    ['/compact', { name: 'compact', request: {} }],
    ['/compact Keep the Plan', { name: 'compact', request: { hint: 'Keep the Plan' } }],
    ['/context', { name: 'context', request: {} }],
    ['/model', { name: 'model', request: {} }],
    ['/model openai/GPT-5', { name: 'model', request: { name: 'openai/GPT-5' } }],
    ['/think High', { name: 'think', request: { level: 'high' } }],
    ['/verbose ON', { name: 'verbose', request: { level: 'on' } }],
    ['/verbose', { name: 'verbose', request: {} }],
    ['/reasoning Stream', { name: 'reasoning', request: { display: 'stream' } }],
    ['/usage', { name: 'usage', request: {} }],
    ['/budget', { name: 'budget', request: {} }],
    ['/budget Session 10', { name: 'budget', request: { name: 'Session', limit: 10_000_000 } }],
    ['/budget person:net:7:2026-11-22 $0,5', budgetRequest('person:net:7:2026-11-22', 500_000)],
    ['/status', { name: 'status', request: {} }],
    ['/help', { name: 'help', request: {} }],
    ['/whoami', { name: 'whoami', request: {} }],
    ['/start', { name: 'start', request: { payload: '' } }],
    ['/start AbC-123', { name: 'start', request: { payload: 'AbC-123' } }],
    ['/start link_ABCD2345', { name: 'link', request: { kind: 'join', code: 'ABCD2345' } }],
    ['/link', { name: 'link', request: { kind: 'ask' } }],
    ['/link List', { name: 'link', request: { kind: 'list' } }],
    ['/link abcd-2345', { name: 'link', request: { kind: 'join', code: 'ABCD2345' } }],
    ['/link abcd 2345', { name: 'link', request: { kind: 'join', code: 'ABCD2345' } }],
    ['/link remove net:7', { name: 'link', request: { kind: 'remove', target: 'net:7' } }],
    ['/activation Always', { name: 'activation', request: { wish: 'always' } }],
    ['/activation mention', { name: 'activation', request: { wish: 'mention' } }],
    ['/activation', { name: 'activation', request: { wish: 'usage' } }],
    ['/nwe', { name: 'unknown', request: { name: 'nwe', meant: 'new' } }],
    ['/Frobnicate_the2nd now', { name: 'unknown', request: { name: 'Frobnicate_the2nd' } }],
    ['/unknown', { name: 'unknown', request: { name: 'unknown' } }],
    ['/constructor', { name: 'unknown', request: { name: 'constructor' } }],
    ['/etc is full', { name: 'unknown', request: { name: 'etc' } }],
    ['/stop@other_bot', { name: 'unknown', request: { name: 'stop@other_bot', meant: 'stop' } }],
    ['/subagents', { name: 'subagents', request: { kind: 'list' } }],
    ['/subagents list', { name: 'subagents', request: { kind: 'list' } }],
    ['/subagents Stop K3vq2', { name: 'subagents', request: { kind: 'stop', which: 'k3vq2' } }],
    [
      '/subagents steer #k3vq Two lines,\n  the Second one',
      { name: 'subagents', request: { kind: 'steer', which: 'k3vq', text: 'Two lines,\n  the Second one' } },
    ],
    ['/tasks', { name: 'tasks', request: { kind: 'list' } }],
    ['/tasks Show #K3vq2', { name: 'tasks', request: { kind: 'show', which: 'k3vq2' } }],
    ['/tasks retry k3vq2', { name: 'tasks', request: { kind: 'retry', which: 'k3vq2' } }],
    ['/tasks stop k3vq2', { name: 'tasks', request: { kind: 'stop', which: 'k3vq2' } }],
    [
      '/tasks stop k3vq Part_1',
      { name: 'tasks', request: { kind: 'stop', which: 'k3vq', subtaskId: 'Part_1' } },
    ],
    [
      '/tasks steer k3vq Part-1 Two lines,\n  the Second one',
      {
        name: 'tasks',
        request: { kind: 'steer', which: 'k3vq', subtaskId: 'Part-1', text: 'Two lines,\n  the Second one' },
      },
    ],
    ['/queue', { name: 'queue', request: { kind: 'show' } }],
    ['/queue reset', { name: 'queue', request: { kind: 'reset' } }],
    ['/queue List', { name: 'queue', request: { kind: 'list' } }],
    ['/queue cancel 17', { name: 'queue', request: { kind: 'cancel', number: 17 } }],
    ['/queue cancel #17', { name: 'queue', request: { kind: 'cancel', number: 17 } }],
    ['/queue cancel ALL', { name: 'queue', request: { kind: 'cancel-all' } }],
    ['/queue promote 3', { name: 'queue', request: { kind: 'promote', number: 3 } }],
    [
      '/queue edit #3 Two lines,\n  the Second one',
      { name: 'queue', request: { kind: 'edit', number: 3, text: 'Two lines,\n  the Second one' } },
    ],
    ['/queue collect', { name: 'queue', request: { kind: 'set', changes: { mode: 'collect' } } }],
    [
      '/queue FollowUp debounce:2s cap:25 drop:summarize quiet:1m',
      {
        name: 'queue',
        request: {
          kind: 'set',
          changes: { mode: 'followup', debounceMs: 2000, cap: 25, drop: 'summarize', quietMs: 60_000 },
        },
      },
    ],
    ['/pair', { name: 'pair', request: { kind: 'list' } }],
    ['/pair List', { name: 'pair', request: { kind: 'list' } }],
    [
      '/pair confirm abcd-2345',
      { name: 'pair', request: { kind: 'confirm', which: 'ABCD2345', of: byCode } },
    ],
    ['/link confirm abcd 2345', { name: 'link', request: { kind: 'confirm', code: 'ABCD2345' } }],
    [
      '/pair approve abcd-2345',
      { name: 'pair', request: { kind: 'approve', which: 'ABCD2345', of: byCode } },
    ],
    [
      '/pair approve net:7',
      { name: 'pair', request: { kind: 'approve', which: 'net:7', of: { ref: 'net:7' } } },
    ],
    ['/approve K3VQ2ABCDE', { name: 'approve', request: { id: 'k3vq2abcde', verdict: 'approve' } }],
    ['/approve k3vq2abcde always', { name: 'approve', request: { id: 'k3vq2abcde', verdict: 'always' } }],
    ['/deny k3vq2abcde', { name: 'deny', request: { id: 'k3vq2abcde', verdict: 'deny' } }],
    ['/activation off', { name: 'activation', request: { wish: 'off' } }],
    ['/pair revoke signal:0f-1', { name: 'pair', request: { kind: 'revoke', ref: 'signal:0f-1' } }],
    ['/queue debounce:500ms', { name: 'queue', request: { kind: 'set', changes: { debounceMs: 500 } } }],
    ['/queue quiet:1.5s', { name: 'queue', request: { kind: 'set', changes: { quietMs: 1500 } } }],
  ])('parses %j', (text, command) => {
    expect(requestOf(text)).toEqual(command);
  });

  it.each([
    'hello',
    'stop',
    '/',
    '/ stop',
    '//stop',
    '/home/me/file.txt',
    '/etc/hosts is wrong',
    '/etc/hosts',
    '/etc, /usr and /var',
    '/notes.txt',
    '/well-known',
    '/5 of us',
    `/${'a'.repeat(33)}`,
    'please /stop',
    '/__proto__',
  ])('treats %j as plain text', (text) => {
    expect(parseCommand(text, bot)).toBeUndefined();
  });

  it("matches the bot's name in any case, and no name if the bot has none", () => {
    expect(requestOf('/stop@parley_bot all')).toEqual({ name: 'stop', request: { isAll: true } });
    expect(parseCommand('/stop@parley_bot', { name: '@PARLEY_bot' })).toBeDefined();
    expect(parseCommand('/stop@parley_bot')?.command.name).toBe('unknown');
    expect(parseCommand('/stop')?.command.name).toBe('stop');
  });

  it.each([
    [
      '/queue fast',
      '“fast” isn’t a queue mode. Use one of steer, steer-backlog, followup, collect, interrupt, or reset.',
    ],
    ['/subagents stop', 'Use /subagents stop and an id from /subagents list.'],
    ['/subagents steer k3vq', 'Use /subagents steer, an id from /subagents list, and your message.'],
    ['/subagents kill k3vq', '/subagents can’t “kill”. Use list, info, log, steer or stop.'],
    ['/tasks show', 'Use /tasks show and an id from /tasks list.'],
    ['/tasks retry k3vq a', 'Use /tasks retry and an id from /tasks list.'],
    ['/tasks stop', 'Use /tasks stop, an id from /tasks list, and for a single subtask its name.'],
    ['/tasks stop k3vq a now', 'Use /tasks stop, an id from /tasks list, and for a single subtask its name.'],
    [
      '/tasks steer k3vq a',
      'Use /tasks steer, an id from /tasks list, the name of a subtask, and your message.',
    ],
    ['/tasks kill k3vq', '/tasks can’t “kill”. Use list, show, stop, retry or steer.'],
    ['/queue debounce:2', 'debounce needs a time like 500ms, 2s or 1m, not “2”.'],
    ['/queue quiet:11m', 'quiet can be at most 10m.'],
    ['/queue cap:0', 'cap needs a whole number from 1 to 1000, not “0”.'],
    ['/queue cap:1e3', 'cap needs a whole number from 1 to 1000, not “1e3”.'],
    ['/queue drop:all', 'drop needs one of summarize, old, new, not “all”.'],
    ['/queue size:3', '“size” isn’t a queue setting. Use debounce, quiet, cap or drop.'],
    ['/queue list all', 'Send /queue list on its own.'],
    ['/queue cancel', 'Use /queue cancel and a number from /queue list, or /queue cancel all.'],
    ['/queue cancel 1 2', 'Use /queue cancel and a number from /queue list, or /queue cancel all.'],
    ['/queue promote all', 'Use /queue promote and a number from /queue list.'],
    ['/queue edit 17', 'Use /queue edit, a number from /queue list, and the new text.'],
    ['/queue edit the words', 'Use /queue edit, a number from /queue list, and the new text.'],
    ['/queue collect steer', '“steer” sets the same thing twice. Keep one of them.'],
    ['/queue cap:5 cap:6', '“cap:6” sets the same thing twice. Keep one of them.'],
    [
      '/queue reset cap:5',
      '“reset” isn’t a queue mode. Use one of steer, steer-backlog, followup, collect, interrupt, or reset.',
    ],
    ['/pair approve', 'Use /pair approve and the person’s code of 8 letters and digits, or their id.'],
    ['/pair approve 0IO1', 'Use /pair approve and the person’s code of 8 letters and digits, or their id.'],
    ['/approve', 'Use /approve and the id from my question.'],
    ['/pair revoke ann', 'Use /pair revoke channel:id; /pair list shows the ids.'],
    ['/pair list all', 'Send /pair list on its own.'],
    [
      '/pair up',
      'Use /pair list, /pair approve and a code, /pair confirm and a code, or /pair revoke channel:id.',
    ],
    ['/link remove', 'Use /link remove channel:id; /link list shows the ids.'],
    ['/link remove net:7 net:8', 'Use /link remove channel:id; /link list shows the ids.'],
    [
      // Codes have no letter O.
      '/link ABCD234O',
      'Use /link to get a code, /link and a code to use it, /link list, or /link remove channel:id.',
    ],
    ['/new what is the weather?', '/new takes no text. Send it on its own.'],
  ])('says what is wrong with %j', (text, problem) => {
    expect(problemOf(text)).toBe(problem);
  });

  it('never throws, and treats nothing without a known name as a command', () => {
    const known = new Set<string>(chatCommands.map(({ name }) => name));
    const anyText = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc
        .tuple(fc.constantFrom(...known), fc.string({ maxLength: 40 }))
        .map(([name, rest]) => `/${name}${rest}`),
    );
    holds(
      fc.property(anyText, (text) => {
        const parsed = parseCommand(text, bot);
        if (parsed !== undefined) expect(known.has(parsed.command.name)).toBe(parsed.inGroups === undefined);
      }),
      { numRuns: 50_000, interruptAfterTimeLimit: 500 },
    );
  });

  it('gives each sender in a group the specified rights', () => {
    const right = (
      text: string,
      sender: { authority: 'owner' | 'guest'; isAdmin?: boolean },
      chat: 'dm' | 'group',
    ) => {
      const parsed = parseCommand(text);
      return parsed?.right({ chat, ...sender });
    };
    const guest = { authority: 'guest' } as const;
    const admin = { authority: 'guest', isAdmin: true } as const;
    const owner = { authority: 'owner' } as const;
    for (const text of [
      '/new',
      '/reset',
      '/compact',
      '/queue collect',
      '/queue',
      '/activation always',
      '/stop all',
      '/queue nonsense',
    ]) {
      expect([text, right(text, guest, 'group')]).toEqual([text, 'denied']);
      expect([text, right(text, admin, 'group')]).toEqual([text, 'allowed']);
      expect([text, right(text, owner, 'group')]).toEqual([text, 'allowed']);
      expect([text, right(text, guest, 'dm')]).toEqual([text, 'allowed']);
    }
    for (const text of ['/pair', '/pair approve ABCDEFGH', '/pair revoke net:1', '/pair nonsense']) {
      expect([text, right(text, owner, 'dm')]).toEqual([text, 'allowed']);
      expect([text, right(text, guest, 'dm')]).toEqual([text, 'denied']);
      for (const sender of [guest, admin, owner])
        expect([text, right(text, sender, 'group')]).toEqual([text, 'denied']);
    }
    expect(right('/stop', guest, 'group')).toBe('own');
    for (const text of ['/queue list', '/queue cancel 1', '/queue cancel all', '/queue edit 1 x'])
      expect([text, right(text, guest, 'group')]).toEqual([text, 'own']);
    for (const text of ['/subagents info abc', '/subagents stop abc', '/subagents steer abc x'])
      expect([text, right(text, guest, 'group')]).toEqual([text, 'own']);
    for (const text of ['/tasks show abc', '/tasks stop abc', '/tasks retry abc', '/tasks steer abc a x'])
      expect([text, right(text, guest, 'group')]).toEqual([text, 'own']);
    expect(right('/subagents list', guest, 'group')).toBe('allowed');
    expect(right('/tasks list', guest, 'group')).toBe('allowed');
    expect(right('/status', guest, 'group')).toBe('allowed');
  });

  it('decides every command, chat, role and admin as documented', () => {
    const isOwner = ({ authority }: Asker) => authority === 'owner';
    // In a direct conversation everybody may use all but the owners’.
    const isAdmin = (asker: Asker) => asker.chat === 'dm' || isOwner(asker) || asker.isAdmin === true;
    const expected: Readonly<Record<string, (asker: Asker) => Right>> = {
      everybody: () => 'allowed',
      'administrators, owners': (asker) => (isAdmin(asker) ? 'allowed' : 'denied'),
      owners: (asker) => (isOwner(asker) ? 'allowed' : 'denied'),
    };
    // Those whose right depends on their words, on the chat, or on whose message it is.
    const special: Readonly<Record<string, (asker: Asker) => Right>> = {
      stop: (asker) => (isAdmin(asker) ? 'allowed' : 'own'),
      subagents: (asker) => (isAdmin(asker) ? 'allowed' : 'own'),
      tasks: (asker) => (isAdmin(asker) ? 'allowed' : 'own'),
      queue: (asker) => (isAdmin(asker) ? 'allowed' : 'denied'),
      agent: (asker) => (isOwner(asker) || (asker.chat === 'group' && isAdmin(asker)) ? 'allowed' : 'denied'),
      budget: () => 'allowed',
      link: () => 'allowed',
      pair: (asker) => (asker.chat === 'dm' && isOwner(asker) ? 'allowed' : 'denied'),
    };
    const documented = new Map(readDocumentedCommands().map((row) => [row.name, row.inGroupsFor]));
    for (const { name, right } of chatCommands) {
      for (const asker of everyAsker) {
        const wanted = (special[name] ?? expected[documented.get(name) ?? ''])?.(asker);
        expect([name, asker, right(asker)]).toEqual([name, asker, wanted]);
      }
    }
  });

  it("lets only an owner choose a model that isn't configured", async () => {
    const wishOf = async (name: string, authority: Asker['authority']) => {
      // `/model` reads nothing else of its call.
      const call = { lane: { agentId: 'main' }, authority } as CommandCall;
      return parseCommand(`/model ${name}`)?.load(commandDeps as CommandDeps, call);
    };
    for (const authority of ['owner', 'member', 'guest'] as const) {
      const own = authority === 'owner' ? 'set' : 'unknown';
      expect(await wishOf('vendor/dear', authority)).toMatchObject({ input: { wish: own } });
      expect(await wishOf('haiku', authority)).toMatchObject({ input: { wish: 'set' } });
      expect(await wishOf('nobody/knows', authority)).toMatchObject({ input: { wish: 'unknown' } });
    }
  });

  it('registers every command in a form that networks accept', () => {
    const native = nativeCommands(textsFor('en'));
    expect(native.map(({ name }) => name)).toEqual(chatCommands.map(({ name }) => name));
    for (const { name, description } of native) {
      expect(name).toMatch(/^[a-z]{1,32}$/);
      expect(description.length).toBeGreaterThanOrEqual(3);
      expect(description.length).toBeLessThanOrEqual(100);
    }
  });

  it('queues the commands that change the session and applies the others at once', () => {
    const orders = new Map(chatCommands.map(({ name, order }) => [name, order]));
    for (const name of ['new', 'reset', 'compact', 'model', 'think', 'reasoning', 'verbose'])
      expect([name, orders.get(name)]).toEqual([name, 'lane']);
    for (const name of ['stop', 'status', 'queue', 'subagents', 'tasks', 'budget', 'pair'])
      expect([name, orders.get(name)]).toEqual([name, 'now']);
  });
});
