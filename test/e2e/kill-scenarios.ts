/** Per kill point: what people do until Parley dies there, and what must be in the chat once it is back. */

import type { KillPoint } from '../../src/contracts/probe.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';
import { createGate, type Gate } from '../platforms/anthropic/gate.ts';
import type { Reply, ScriptedCall } from '../platforms/anthropic/turn.ts';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';
import { mention } from '../platforms/discord/people.ts';
import { onePixel } from '../support/one-pixel.ts';
import { discordOf } from './discord-side.ts';
import type { ParleyProcess } from './parley-process.ts';
import type { Person } from './person.ts';
import { answerQuestion, answerTo, questionOf } from './questions.ts';
import { signalOf } from './signal-side.ts';
import type { ChannelName, Stage } from './stage.ts';
import { until } from './until.ts';

export type Acting = {
  readonly stage: Stage;
  readonly person: Person;
  /** The person's number on every platform. */
  readonly id: number;
  readonly parley: ParleyProcess;
};

/** The first person of a series. */
export const firstId = 501;

export type Scenario = {
  readonly title: string;
  /**
   * Where each start but the last is killed: `<point>:<nth time>`. A place that isn't a point of the probe is
   * killed by the scenario itself: inside a tool, in the middle of a download or of a preview's call.
   */
  readonly kills: readonly `${KillPoint | 'tool' | 'download' | 'preview'}:${number}`[];
  readonly channels: readonly ChannelName[];
  /** Channels on which it is played too in the long runs. */
  readonly longChannels?: readonly ChannelName[];
  /** The questions; each must be in the transcript once, and once in every request. */
  readonly questions: readonly string[];
  /** How many of them come from the network; default: all. */
  readonly events?: number;
  /** The contents of parley.config.json. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Further variables of the gateway. */
  readonly env?: Readonly<Record<string, string>>;
  /** What must be in the conversation in the end, in this order and with nothing else. */
  readonly expected: readonly string[];
  /** The send was interrupted: `lost` = nothing arrived, `arrived` = it did; the store must say `unknown`. */
  readonly unknown?: 'lost' | 'arrived';
  /** What that send was; default: the answer itself. */
  readonly unknownPurpose?: 'reply' | 'tool';
  /** A notice is sent at the moment of the kill, which may cut it off, too. */
  readonly mayCutNotice?: true;
  /** How often a tool must have had its effect. */
  readonly effects?: number;
  /** Called once each time the scenario is played. */
  prepare(): Play;
};

export type Play = {
  reply(body: WireBody, count: number): Reply;
  act(acting: Acting): Promise<void> | void;
  standing?(acting: Acting): readonly string[];
  /** What happens between the last kill and the last start. */
  whileAway?(acting: Acting): void;
  /** What happens once it has started for the last time. */
  onceBack?(acting: Acting): Promise<void> | void;
};

const telegram = { channels: ['telegram'] } as const;
const signal = { channels: ['signal'] } as const;
const discord = { channels: ['discord'] } as const;
const discordInLongRuns = { channels: [], longChannels: ['discord'] } as const;
const signalInLongRuns = { channels: [], longChannels: ['signal'] } as const;
const inLongRuns = { channels: [], longChannels: ['telegram'] } as const;
const telegramFirst = { channels: ['telegram'], longChannels: ['web', 'terminal'] } as const;
/** No call is given up for a message that arrives before its first word. */
const patient = { run: { steerRestart: { dm: 'never' } } } as const;
const texts = textsFor('en');
/** Stands in for ⚠, which Telegram doesn't offer. */
const telegramFailed = '😢';
const question = 'question-1';
const answer = answerTo(question);

const asks = { reply: answerQuestion, act: ({ person }: Acting) => person.says(question) } satisfies Play;
const plain = { title: 'a question', questions: [question], expected: [answer], prepare: () => asks };

/** The answer arrives slowly enough to be shown while it is written. */
export const paced: Play = {
  ...asks,
  reply: (body) => ({ chunks: [...answerTo(questionOf(body))], chunkDelayMs: 40 }),
};

/** First the calls, then the answer. */
export function callsFirst(...toolCalls: readonly ScriptedCall[]): Play {
  const hasResult = (body: WireBody) =>
    body.messages.flatMap(blocksOf).some((block) => block.type === 'tool_result');
  return { ...asks, reply: (body) => (hasResult(body) ? answerQuestion(body) : { toolCalls }) };
}

/** An answer of two parts, where a message holds less than twice `length` characters. */
const partsOf = (length: number) => ['a', 'b'].map((letter) => `${question} ${letter.repeat(length)}`);
const longAnswer = partsOf(3000);
const long: Play = { ...asks, reply: () => ({ text: longAnswer.join('\n\n') }) };
const longOnDiscord = partsOf(1500);

const once = callsFirst({ name: 'once' });
const again = callsFirst({ name: 'again' });
const sends = callsFirst({ name: 'message', input: { text: 'I am on it.' } });

export const scenarios: readonly Scenario[] = [
  ...(
    [
      ...(['received', 'woken', 'claimed', 'taken', 'model-called', 'call-reserved'] as const),
      ...(['turn-committed', 'finished', 'marked'] as const),
    ] as const
  ).map((point): Scenario => ({ ...plain, ...telegramFirst, kills: [`${point}:1`] })),
  { ...plain, kills: ['accepted:1'], channels: ['telegram', 'web'], longChannels: ['terminal'] },
  { ...plain, ...telegramFirst, title: 'mid-answer', kills: ['streaming:8'], prepare: () => paced },
  // Marked as sending, and the journal says that its call hadn't begun.
  { ...plain, ...telegramFirst, kills: ['outbox-claimed:1'] },
  // From here on nobody can know how far the call got.
  { ...plain, ...telegram, kills: ['sending:1'], unknown: 'lost', expected: [] },
  { ...plain, kills: ['sending:1'], channels: ['web'], longChannels: ['terminal'] },
  { ...plain, ...telegram, kills: ['sent-not-marked:1'], unknown: 'arrived' },
  { ...plain, kills: ['sent-not-marked:1'], channels: ['terminal'], longChannels: ['web'] },
  {
    ...plain,
    title: 'a photo',
    kills: ['fetched:1'],
    ...telegram,
    prepare: () => ({ ...asks, act: sendsPhoto }),
  },
  {
    ...plain,
    title: 'preview in a group',
    kills: ['preview-sent:1'],
    ...telegram,
    prepare: () => inGroup(),
  },
  {
    ...plain,
    title: 'preview in a group, and the network answers late',
    kills: ['preview-sent:1'],
    ...telegram,
    prepare: () => ({ ...inGroup(), whileAway: answersLate }),
  },
  // An edit that was cut off is made again: it ends in the same text, however often it is made.
  ...(['sending', 'sent-not-marked'] as const).map(
    (point): Scenario => ({
      ...plain,
      title: 'the answer that replaces a preview',
      kills: [`${point}:1`],
      ...telegram,
      prepare: () => inGroup(),
    }),
  ),
  {
    title: 'an album in a group',
    kills: ['accepted:1'],
    ...telegram,
    questions: [question],
    expected: [answer],
    prepare: () => inGroup(sendsAlbum),
  },
  {
    ...plain,
    title: 'an answer of two parts, the first cut off',
    kills: ['sent-not-marked:1'],
    ...telegram,
    unknown: 'arrived',
    expected: longAnswer,
    prepare: () => long,
  },
  {
    ...plain,
    title: 'an answer of two parts, between them',
    kills: ['marked:1'],
    ...telegram,
    expected: longAnswer,
    prepare: () => long,
  },
  {
    ...plain,
    title: 'a photo, in the middle of its download',
    kills: ['download:1'],
    ...telegram,
    prepare: () => downloads(),
  },
  {
    ...plain,
    title: 'inside a tool that must not repeat',
    kills: ['tool:1'],
    ...telegram,
    effects: 1,
    prepare: () => callsFirst({ name: 'once', input: { dies: 1 } }),
  },
  {
    ...plain,
    title: 'inside a tool that must not repeat, which the recovery began',
    kills: ['turn-committed:1', 'tool:1'],
    ...telegram,
    effects: 1,
    prepare: () => callsFirst({ name: 'once', input: { dies: 1 } }),
  },
  {
    ...plain,
    title: 'inside a tool that may repeat',
    kills: ['tool:1'],
    ...telegram,
    effects: 2,
    prepare: () => callsFirst({ name: 'again', input: { dies: 1 } }),
  },
  ...(['turn-committed', 'tool-started', 'tool-finished'] as const).map(
    (point): Scenario => ({
      ...plain,
      ...telegramFirst,
      title: 'a tool that must not repeat',
      kills: [`${point}:1`],
      // Started and without a result: whether it had its effect is unknown, so it isn't run again.
      effects: point === 'tool-started' ? 0 : 1,
      prepare: () => once,
    }),
  ),
  {
    ...plain,
    title: 'a tool that may repeat',
    kills: ['tool-started:1'],
    ...inLongRuns,
    effects: 1,
    prepare: () => again,
  },
  ...(['tool-started', 'finished'] as const).map(
    (point): Scenario => ({
      ...plain,
      title: 'the message tool',
      kills: [`${point}:1`],
      ...inLongRuns,
      expected: ['I am on it.', answer],
      prepare: () => sends,
    }),
  ),
  {
    ...plain,
    title: 'the message tool, its send',
    kills: ['sent-not-marked:1'],
    ...telegram,
    unknown: 'arrived',
    unknownPurpose: 'tool',
    expected: ['I am on it.', answer],
    prepare: () => sends,
  },
  {
    title: 'a second message behind the answer',
    config: patient,
    kills: ['steered:1'],
    ...telegramFirst,
    questions: ['question-1', 'question-2'],
    expected: [answerTo('question-1'), answerTo('question-2')],
    prepare: () => steers((gate) => ({ text: answer, hold: { gate } })),
  },
  {
    title: 'a second message while a tool is called',
    config: patient,
    kills: ['steered:1'],
    ...telegramFirst,
    questions: ['question-1', 'question-2'],
    expected: [answerTo('question-2')],
    effects: 1,
    prepare: () => steers((gate) => ({ toolCalls: [{ name: 'once' }], hold: { gate } })),
  },
  {
    title: 'a second message before the first word',
    kills: ['steered:1'],
    ...telegramFirst,
    questions: ['question-1', 'question-2'],
    expected: [answerTo('question-2')],
    prepare: () => steers((gate) => ({ text: answer, hold: { gate } })),
  },
  {
    title: '/stop',
    kills: ['command-applied:1'],
    ...telegramFirst,
    questions: [question],
    expected: [texts.stopped],
    prepare: () => meanwhile(({ person }) => person.says('/stop')),
  },
  {
    title: '/queue',
    kills: ['command-applied:1'],
    ...inLongRuns,
    questions: [],
    expected: ['Queue: followup debounce:0ms quiet:1000ms cap:20 drop:summarize'],
    prepare: () => ({ ...asks, act: ({ person }) => person.says('/queue followup') }),
  },
  {
    title: '/new behind an active run',
    kills: ['accepted:2'],
    ...telegramFirst,
    questions: [question],
    expected: [texts.newSession],
    prepare: () => meanwhile(({ person }) => person.says('/new')),
  },
  {
    title: 'a message that interrupts',
    kills: ['accepted:2'],
    ...telegramFirst,
    config: { queue: { dm: { mode: 'interrupt' } } },
    questions: ['question-1', 'question-2'],
    expected: [answerTo('question-2')],
    prepare: () => meanwhile(({ person }) => person.says('question-2')),
  },
  {
    title: 'a correction of the message that runs',
    kills: ['accepted:2'],
    ...telegram,
    questions: ['question-1', 'question-2'],
    expected: [answerTo('question-2')],
    prepare: () =>
      meanwhile(({ id, stage: { telegram } }) => {
        const messageId = telegram.messages(id)[0]?.messageId ?? 0;
        telegram.people.edits({ chat: id, messageId, text: 'question-2' });
      }),
  },
  {
    ...plain,
    title: 'SIGTERM, and killed while it hands over',
    kills: ['handing-over:1'],
    ...telegramFirst,
    prepare: () => handsOver(),
  },
  {
    ...plain,
    title: 'killed twice in a row',
    kills: ['streaming:8', 'streaming:8'],
    ...telegram,
    prepare: () => paced,
  },
  {
    title: 'killed in every attempt',
    kills: ['model-called:1', 'model-called:1', 'model-called:1'],
    ...inLongRuns,
    questions: [question],
    expected: [texts.restartGaveUp],
    prepare: () => asks,
  },
  {
    title: 'killed in every attempt, at last with an open call',
    kills: ['model-called:1', 'model-called:1', 'tool-started:1'],
    ...telegram,
    questions: [question],
    expected: [texts.restartGaveUp],
    prepare: () => once,
  },
  {
    // The preview is in the first life: a run that resumes before its channel is back shows none.
    title: 'killed in every attempt, at last in the middle of an answer',
    kills: ['preview-sent:1', 'model-called:1', 'streaming:8'],
    ...inLongRuns,
    questions: [question],
    expected: [telegramFailed],
    prepare: () => inGroup(),
  },
  // Not at `received`: Signal's server doesn't resend what the webhook hasn't answered (a gap is reported).
  { ...plain, ...signal, kills: ['accepted:1'] },
  { ...plain, ...signal, kills: ['sending:1'], unknown: 'lost', expected: [] },
  { ...plain, ...signal, kills: ['sent-not-marked:1'], unknown: 'arrived' },
  {
    ...plain,
    title: 'a photo on Signal',
    kills: ['fetched:1'],
    ...signal,
    prepare: () => ({ ...asks, act: sendsPhotoOnSignal }),
  },
  {
    title: 'a second message behind the answer',
    config: patient,
    kills: ['steered:1'],
    ...signalInLongRuns,
    questions: ['question-1', 'question-2'],
    expected: [answerTo('question-1'), answerTo('question-2')],
    prepare: () => steers((gate) => ({ text: answer, hold: { gate } })),
  },
  ...(
    [
      ...(['woken', 'claimed', 'taken', 'model-called', 'streaming'] as const),
      ...(['turn-committed', 'finished', 'outbox-claimed', 'marked'] as const),
    ] as const
  ).map((point): Scenario => ({ ...plain, ...signalInLongRuns, kills: [`${point}:1`] })),
  // At `received` this is somebody's first message, in a direct conversation that no bot can list. An interrupted
  // send is repeated under its nonce, and Discord shows it once, so nothing is ever unknown.
  ...(['received', 'accepted', 'sending', 'sent-not-marked'] as const).map(
    (point): Scenario => ({ ...plain, ...discord, kills: [`${point}:1`] }),
  ),
  {
    ...plain,
    title: 'an answer of two parts, the first cut off',
    kills: ['sent-not-marked:1'],
    ...discordInLongRuns,
    expected: longOnDiscord,
    prepare: () => ({ ...asks, reply: () => ({ text: longOnDiscord.join('\n\n') }) }),
  },
  // On Discord a preview is a message, which the answer replaces.
  {
    ...plain,
    title: 'an answer with a preview',
    kills: ['preview-sent:1'],
    ...discord,
    prepare: () => paced,
  },
  {
    ...plain,
    title: 'the answer that replaces a preview',
    kills: ['sending:1'],
    ...discordInLongRuns,
    prepare: () => paced,
  },
  {
    ...plain,
    title: 'a photo on Discord',
    kills: ['fetched:1'],
    ...discordInLongRuns,
    prepare: () => ({ ...asks, act: sendsPhotoOnDiscord }),
  },
  {
    ...plain,
    title: 'a mention in a guild',
    kills: ['accepted:1'],
    ...discord,
    prepare: () => inGuild(),
  },
  {
    title: 'a second message behind the answer',
    config: patient,
    kills: ['steered:1'],
    ...discordInLongRuns,
    questions: ['question-1', 'question-2'],
    expected: [answerTo('question-1'), answerTo('question-2')],
    prepare: () => steers((gate) => ({ text: answer, hold: { gate } })),
  },
  {
    title: 'a slash command',
    kills: ['command-applied:1'],
    ...discord,
    questions: [],
    expected: ['Queue: followup debounce:0ms quiet:1000ms cap:20 drop:summarize'],
    prepare: () => ({ ...asks, act: usesQueue }),
  },
  ...(
    [
      'woken',
      'claimed',
      'taken',
      'model-called',
      'streaming',
      'turn-committed',
      'finished',
      'outbox-claimed',
      'marked',
    ] as const
  ).map((point): Scenario => ({ ...plain, ...discordInLongRuns, kills: [`${point}:1`] })),
];

const ada = ({ id }: Acting) => ({ id, is_bot: false, first_name: 'Ada' });

function aPhoto({ telegram }: Stage) {
  return telegram.world.addFile({ name: 'dot.onePixel', mimeType: 'image/onePixel', bytes: onePixel });
}

function sendsPhoto(acting: Acting): void {
  const { stage } = acting;
  stage.telegram.people.sends({ from: ada(acting), text: question, photo: aPhoto(stage) });
}

/** The server keeps its copy until Parley has stored its own. */
function sendsPhotoOnSignal({ stage, id }: Acting): void {
  const { server, user } = signalOf(stage);
  const { world, people } = server;
  const photo = world.addAttachment({
    bytes: onePixel,
    fileName: 'dot.onePixel',
    contentType: 'image/onePixel',
  });
  people.writes({ from: user(id), text: question, attachments: [photo] });
}

function sendsPhotoOnDiscord({ stage, id }: Acting): void {
  const { server, user } = discordOf(stage);
  const photo = server.world.addFile({ name: 'dot.onePixel', mimeType: 'image/onePixel', bytes: onePixel });
  server.people.sends({ from: user(id), text: question, files: [photo] });
}

async function usesQueue({ stage, id }: Acting): Promise<void> {
  const { server, user } = discordOf(stage);
  await server.waitFor(() => (server.platform.commands.get('global')?.length ?? 0) > 0);
  server.people.uses({ from: user(id), name: 'queue', options: { text: 'followup' } });
}

function inGuild(): Play {
  const channels: string[] = [];
  return {
    ...asks,
    act: ({ stage, id }) => {
      const { server, user } = discordOf(stage);
      const guild = server.world.addGuild('Team', user(id));
      const channel = server.world.addChannel(guild, 'general');
      channels.push(channel.id);
      server.places.addsBot(guild);
      server.people.sends({ from: user(id), channel, text: `${mention(server.bot)} ${question}` });
    },
    standing: ({ stage }) =>
      channels.flatMap((id) =>
        discordOf(stage)
          .server.botMessages(id)
          .map(({ text }) => text),
      ),
  };
}

/** Its first download is still open when the process dies; the next one succeeds. */
function downloads(): Play {
  let tries = 0;
  return {
    ...asks,
    act: async (acting) => {
      const { parley, stage } = acting;
      const { people, world } = stage.telegram;
      const begun = Promise.withResolvers<void>();
      const bytes = async function* () {
        tries += 1;
        yield onePixel.subarray(0, 20);
        if (tries === 1) {
          begun.resolve();
          await parley.ended;
        }
        yield onePixel.subarray(20);
      };
      const file = { name: 'dot.onePixel', mimeType: 'image/onePixel', sizeBytes: onePixel.length, bytes };
      people.sends({ from: ada(acting), text: question, photo: world.addFile(file) });
      await begun.promise;
      await parley.kill();
    },
  };
}

export function inGroup(says: (acting: Acting, chat: number) => void = mentions): Play {
  const chats: number[] = [];
  return {
    reply: paced.reply,
    act: (acting) => {
      const { chat } = acting.stage.telegram.world.addSupergroup('friends');
      chats.push(chat.id);
      says(acting, chat.id);
    },
    standing: ({ stage: { telegram } }) =>
      chats.flatMap((chat) => [
        ...telegram.botMessages(chat).map(({ text }) => text),
        ...telegram
          .messages(chat)
          .flatMap(({ botReaction }) => (botReaction === telegramFailed ? botReaction : [])),
      ]),
  };
}

function mentions(acting: Acting, chat: number): void {
  const { people, bot } = acting.stage.telegram;
  people.sends({ chat, from: ada(acting), text: `@${bot.username} ${question}` });
}

/** Only the caption of the first photo mentions the bot; the second belongs to it. */
function sendsAlbum(acting: Acting, chat: number): void {
  const { stage } = acting;
  const { people, bot } = stage.telegram;
  const photos = [aPhoto(stage), aPhoto(stage)];
  people.sendsAlbum({ chat, from: ada(acting), text: `@${bot.username} ${question}` }, photos);
}

/** The run resumes before its channel knows its own bot account. */
function answersLate({ stage }: Acting): void {
  stage.telegram.fault({ kind: 'slow', ms: 1500 }, { method: 'getMe' });
}

/** The second message is stored while the first model call waits at the gate. */
function steers(first: (gate: Gate) => Reply): Play {
  const gate = createGate();
  return {
    reply: (body, count) => (count === 1 ? first(gate) : answerQuestion(body)),
    act: async ({ person }) => {
      person.says('question-1');
      await gate.reached;
      person.says('question-2');
      await until(person.isHeard, { what: 'the second message is taken in' });
      gate.open();
    },
  };
}

/** Something happens while the model call of the first question waits at the gate. */
function meanwhile(happens: (acting: Acting) => void): Play {
  const gate = createGate();
  return {
    reply: (body, count) => (count === 1 ? { text: answer, hold: { gate } } : answerQuestion(body)),
    act: async (acting) => {
      acting.person.says(question);
      await gate.reached;
      happens(acting);
    },
  };
}

function handsOver(): Play {
  const gate = createGate();
  return {
    reply: (body, count) => (count === 1 ? { text: answer, hold: { gate } } : answerQuestion(body)),
    act: async ({ person, parley }) => {
      person.says(question);
      await gate.reached;
      void parley.stop();
    },
  };
}
