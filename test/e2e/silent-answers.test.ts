/** Through a gateway on three networks: what must not be said is never shown, and what a tool has said isn't said twice. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, test } from 'vitest';
import type { Reply } from '../platforms/anthropic/turn.ts';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import type { Fault } from '../platforms/telegram/faults.ts';
import { countEvents, findBreaches, untilAtRest } from './conservation.ts';
import { describeRow } from './describe-row.ts';
import { discordOf } from './discord-side.ts';
import { roomsOf } from './rooms.ts';
import { signalOf } from './signal-side.ts';
import { openStage, type Stage } from './stage.ts';
import { until } from './until.ts';

const forms = [
  'NO_REPLY',
  'no_reply.',
  '**NO_REPLY**',
  '`NO_REPLY`',
  '“NO_REPLY”',
  '{"action": "NO_REPLY"}',
  '```json\n{"action":"NO_REPLY"}\n```',
  'NO_REPLY\nNO_REPLY',
  '[[reply_to_current]] NO_REPLY',
  '<think>Nobody asked me.</think>NO_REPLY',
];

const hasResult = (body: WireBody) =>
  body.messages
    .slice(-1)
    .flatMap(blocksOf)
    .some((block) => block.type === 'tool_result');

describeRow('silent answers on three networks', (atEnd) => {
  let stage: Stage;
  beforeAll(async () => {
    const access = { dmPolicy: 'open', groupPolicy: 'open' };
    const config = {
      access,
      owners: ['telegram:690'],
      replies: { ackReaction: '👀' },
      queue: { waitingNotice: { kind: 'off' } },
      plugins: { files: { readAuthority: 'guest' } },
    };
    stage = await openStage({ config, networks: ['discord', 'signal'] }, atEnd);
    await stage.start();
  });

  /** The conversations: a direct chat and a group on each network. */
  const conversations = () => [
    ...(['telegram', 'discord', 'signal'] as const).map((channel) => {
      const person = stage.person(channel);
      return { asks: (text: string) => person.says(text), standing: () => person.standing() };
    }),
    ...roomsOf(stage).map((room) => ({
      asks: (text: string) => void room.asks(text),
      standing: () => room.standing(),
    })),
  ];
  const callsSoFar = () => [
    stage.telegram.sent.filter(({ method }) => method !== 'setMessageReaction').length,
    discordOf(stage).server.sent.length,
    signalOf(stage).server.calls.filter(({ path }) => path === '/v2/send').length,
  ];

  test('shows nothing of silence in any form, at any split, in direct chats and groups', async ({
    expect,
  }) => {
    const all = conversations();
    const before = callsSoFar();
    for (const [index, form] of forms.entries()) {
      const events = countEvents(stage.dataDir);
      // Every third answer is slow enough for previews.
      stage.model.script(() => ({ chunks: [...form], ...(index % 3 === 0 && { chunkDelayMs: 60 }) }));
      for (const { asks } of all) asks(`question ${index}`);
      await untilAtRest(stage.dataDir, events + all.length);
    }
    expect(callsSoFar()).toEqual(before);
    expect(all.map(({ standing }) => standing())).toEqual(all.map(() => []));
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('leaves nothing standing of silence behind tools whose steps a preview has shown', async ({
    expect,
  }) => {
    const all = conversations();
    const standing = all.map((one) => one.standing());
    for (const form of forms.slice(0, 3)) {
      const events = countEvents(stage.dataDir);
      const beside = { chunks: [...'Let me look.'], chunkDelayMs: 60, toolCalls: [{ name: 'again' }] };
      stage.model.script((body) => (hasResult(body) ? { chunks: [...form], chunkDelayMs: 30 } : beside));
      for (const { asks } of all) asks('question behind a tool');
      await untilAtRest(stage.dataDir, events + all.length);
    }
    expect(all.map((one) => one.standing())).toEqual(standing);
    const removed = discordOf(stage).server.sent.filter(({ route }) => route.startsWith('DELETE'));
    expect(removed.length).toBeGreaterThan(0);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('sends the file that comes with silence, and not a word', async ({ expect }) => {
    const all = conversations();
    const before = all.map((one) => one.standing());
    await mkdir(join(stage.dataDir, 'workspace'), { recursive: true });
    await writeFile(join(stage.dataDir, 'workspace', 'notes.txt'), 'the bytes');
    for (const form of forms.slice(2, 4)) {
      const events = countEvents(stage.dataDir);
      const attaches: Reply = { toolCalls: [{ name: 'attach' }] };
      stage.model.script((body) => (hasResult(body) ? { chunks: [...form], chunkDelayMs: 30 } : attaches));
      for (const { asks } of all) asks('question with a file');
      await untilAtRest(stage.dataDir, events + all.length);
    }
    const shown = all.map((one, index) => one.standing().slice(before[index]?.length));
    expect(shown).toEqual(all.map(() => ['', '']));
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  test('takes the reaction back that shows that a message is being answered', async ({ expect }) => {
    const { telegram } = stage;
    const isSet = ({ params }: (typeof telegram.calls)[number]) =>
      JSON.stringify(params.reaction).includes('👀');
    const pairs = () => {
      const reactions = telegram.calls.filter(({ method }) => method === 'setMessageReaction');
      const others = [discordOf(stage).server.calls, signalOf(stage).server.calls].map((calls) => {
        const own = calls.filter(({ path }) => path.includes('/reactions/'));
        const taken = own.filter(({ method }) => method === 'DELETE').length;
        return { set: own.length - taken, taken };
      });
      const set = reactions.filter(isSet).length;
      return [{ set, taken: reactions.length - set }, ...others];
    };
    // The sweep takes them off.
    await until(() => pairs().every(({ set, taken }) => set === taken), { what: 'no reaction stays' });
    for (const { set } of pairs()) expect(set).toBeGreaterThan(10);
  });

  const text = 'The train to Rome leaves at nine.';
  type Case = readonly [name: string, final: string, fault: Fault | undefined, standing: readonly string[]];
  const refused: Fault = { kind: 'refuse', code: 400, description: 'Bad Request: no' };
  const cases: readonly Case[] = [
    ['repeats it', text, undefined, [text]],
    ['repeats it with decoration', `**${text}** 🚂`, undefined, [text]],
    ['only acknowledges it', 'Sent!', undefined, [text]],
    ['is silent', 'NO_REPLY', undefined, [text]],
    ['says more', 'Platform two.', undefined, [text, 'Platform two.']],
    ['repeats it after a refused send', text, refused, [text]],
    ['is silent after a refused send', 'NO_REPLY', refused, []],
    ['repeats it after a send whose answer was lost', text, { kind: 'drop-answer' }, [text, text]],
    ['repeats it after a send that was cut off', text, { kind: 'cut' }, [text]],
  ];
  test('answers with what the message tool has said elsewhere', async ({ expect }) => {
    const [owner, other] = [stage.person('telegram', 690), stage.person('telegram', 691)];
    const events = countEvents(stage.dataDir);
    stage.model.script(() => ({ text: 'Hello.' }));
    other.says('hello');
    await untilAtRest(stage.dataDir, events + 1);
    const to = `main:${stage.telegram.bot.id}:telegram:dm:691`;
    const send: Reply = { toolCalls: [{ name: 'message', input: { text, to } }] };
    stage.model.script((body) => (hasResult(body) ? { text } : send));
    owner.says('tell them when it leaves');
    await untilAtRest(stage.dataDir, events + 2);
    expect([owner.standing(), other.standing()]).toEqual([[text], ['Hello.', text]]);
    expect(findBreaches(stage.dataDir)).toEqual([]);
  });

  for (const [index, [name, final, fault, expected]] of cases.entries())
    test(`says once what the message tool has said when the answer ${name}`, async ({ expect }) => {
      const id = 700 + index;
      const person = stage.person('telegram', id);
      const events = countEvents(stage.dataDir);
      const send: Reply = { toolCalls: [{ name: 'message', input: { text } }] };
      stage.model.script((body) => (hasResult(body) ? { chunks: [...final] } : send));
      if (fault) stage.telegram.fault(fault, { method: 'sendMessage', times: 1 });
      person.says('when does it leave?');
      await untilAtRest(stage.dataDir, events + 1);
      expect(person.standing()).toEqual(expected);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    });

  // Discord recognizes a repeat; Signal can't be asked whether the first arrived.
  const elsewhere = [
    ['discord', 'drop-answer', [text]],
    ['discord', 'cut', [text]],
    ['signal', 'drop-answer', [text, text]],
    ['signal', 'cut', [text]],
  ] as const;
  for (const [index, [channel, kind, expected]] of elsewhere.entries())
    test(`says what the message tool has sent as often as ${channel} can tell after a fault: ${kind}`, async ({
      expect,
    }) => {
      const person = stage.person(channel, 800 + index);
      const events = countEvents(stage.dataDir);
      const send: Reply = { toolCalls: [{ name: 'message', input: { text } }] };
      stage.model.script((body) => (hasResult(body) ? { text } : send));
      if (channel === 'discord')
        discordOf(stage).server.fault({ kind }, { route: 'POST /channels/:channel/messages', times: 1 });
      else signalOf(stage).server.fault({ kind }, { path: '/v2/send', times: 1 });
      person.says('when does it leave?');
      await untilAtRest(stage.dataDir, events + 1);
      expect(person.standing()).toEqual(expected);
      expect(findBreaches(stage.dataDir)).toEqual([]);
    });
});
