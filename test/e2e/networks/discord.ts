import type { Fault } from '../../platforms/discord/faults.ts';
import type { DiscordServer } from '../../platforms/discord/server.ts';
import type { StandingMessage, Wire } from '../../platforms/discord/types.ts';
import { discordOf } from '../discord-side.ts';
import type { Stage } from '../stage.ts';
import { type Hands, type Network, nested, type Outage, type SendFault, tooMany } from './network.ts';

const serverOf = (stage: Stage): DiscordServer => discordOf(stage).server;
const post = { route: 'POST /channels/:channel/messages' } as const;

function onSend(fault: Fault): SendFault['arm'] {
  return (stage) => serverOf(stage).fault(fault, post);
}

/** Discord recognizes a send that is repeated under its nonce, so nothing has to stay unknown. */
const sendFaults: readonly SendFault[] = [
  {
    what: 'takes an answer and is cut before it says so',
    arm: onSend({ kind: 'drop-answer' }),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
  {
    what: 'is cut before it takes an answer',
    arm: onSend({ kind: 'cut' }),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
  {
    what: 'takes an answer and says so 3 s later',
    arm: onSend({ kind: 'slow', ms: 3000 }),
    ...{ fate: 'sent', stands: 1, calls: 1 },
  },
  {
    what: 'takes an answer and never says so',
    arm: onSend({ kind: 'hang', isApplied: true }),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
  {
    what: 'stands behind a proxy that answers 502',
    arm: onSend({ kind: 'page', status: 502 }),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
  {
    what: 'takes an answer and says 502',
    arm: onSend({ kind: 'lose-answer' }),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
  {
    what: 'asks to wait with 429',
    arm: onSend({ kind: 'rate-limit', retryAfterMs: 1000 }),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
  {
    what: 'asks to wait with 429 three times in a row',
    arm: (stage) => serverOf(stage).fault({ kind: 'rate-limit', retryAfterMs: 500 }, { ...post, times: 3 }),
    ...{ fate: 'sent', stands: 1, calls: 4 },
  },
  {
    what: 'says that the person takes no messages from the bot',
    arm: onSend({ kind: 'refuse', status: 403, code: 50007, message: 'Cannot send messages to this user' }),
    ...{ fate: 'failed', stands: 0, calls: 1 },
  },
  {
    what: 'asks the whole bot to wait with a global 429',
    arm: onSend({ kind: 'rate-limit', retryAfterMs: 1000, isGlobal: true }),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
  {
    // It is retried half a minute later.
    what: 'refuses the token for one call',
    isInLongRunsOnly: true,
    arm: onSend({ kind: 'refuse', status: 401, code: 0, message: '401: Unauthorized' }),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
];

/** Parley then starts a new session and reads what it missed; resuming a session is among the cuts. */
const away: Outage = {
  what: 'is away',
  shown: /ECONNREFUSED/,
  begin: (stage) => serverOf(stage).goAway(),
  end: (stage) => serverOf(stage).comeBack(),
};

const outages: Network['outages'] = [
  away,
  {
    // Calls are aborted after 15 s.
    what: 'says nothing more though every connection stays open',
    isInLongRunsOnly: true,
    shown: /did not answer in time/,
    begin: (stage) => serverOf(stage).goSilent(),
    end: (stage) => serverOf(stage).clearFaults(),
  },
];

const poison: readonly (readonly [string, Wire])[] = [
  ['MESSAGE_CREATE', { id: 'seven', channel_id: 7, note: 'kept-1' }],
  ['MESSAGE_CREATE', { id: '7', channel_id: '7', note: 'kept-2', message: nested(800) }],
  ['MESSAGE_DELETE', { id: null, note: 'kept-3' }],
  ['MESSAGE_REACTION_ADD', { emoji: 7, channel_id: {}, note: 'kept-4' }],
  ['INTERACTION_CREATE', { id: 7, type: [], note: 'kept-5' }],
  ['MESSAGE_DELETE_BULK', { ids: 'all', note: 'kept-6' }],
  ['MESSAGE_CREATE', { id: '8', channel_id: '8', note: 'kept-7', mentions: tooMany }],
];

/** The messages people wrote to the bot, newest last. */
function written({ world }: DiscordServer): readonly StandingMessage[] {
  const all = [...world.channels.values()].flatMap((channel) => [...channel.messages.values()]);
  return all
    .filter(({ author }) => author.bot !== true)
    .sort((one, other) => (BigInt(one.id) < BigInt(other.id) ? -1 : 1));
}

function tellAgain(server: DiscordServer, messages: readonly StandingMessage[]): void {
  for (const message of messages) server.platform.events.messageCreated(message);
}

function handsOf(stage: Stage): Hands {
  const { server, user } = discordOf(stage);
  return {
    callsWith: (text) =>
      server.sent.filter(({ body }) => (body as { content?: unknown } | undefined)?.content === text).length,
    refuseSignsOfLife: () => {
      server.fault({ kind: 'page', status: 502 }, { route: 'POST /channels/:channel/typing', times: 100 });
      return () => 0;
    },
    sendsLostFile: (id, text) => {
      const bytes = Buffer.from('x');
      const file = server.world.addFile({ name: 'plan.pdf', mimeType: 'application/pdf', bytes });
      server.world.files.delete(file.id);
      server.people.sends({ from: user(id), text, files: [file] });
    },
    inDisorder: (act) => {
      const before = written(server).length;
      server.gateway.fault({
        kind: 'reverse',
        event: 'MESSAGE_CREATE',
        count: Number.POSITIVE_INFINITY,
      });
      act();
      server.gateway.clearFaults();
      tellAgain(server, written(server).slice(before).reverse());
    },
    redeliver: (count) => tellAgain(server, written(server).slice(-count)),
    sendsPoison: async () => {
      for (const [t, data] of poison) server.gateway.dispatch({ t, data: () => data });
      return [1, 2, 3, 4, 5, 6, 7].map((mark) => `kept-${mark}`);
    },
  };
}

export const discordNetwork: Network = {
  ...{ name: 'Discord', channel: 'discord', part: 'discord' },
  outages,
  sendFaults,
  cuts: [
    async (stage) => {
      await away.begin(stage);
      await away.end(stage);
    },
    (stage) => serverOf(stage).gateway.askToReconnect(),
    (stage) => serverOf(stage).gateway.cut({ isResumable: false }),
  ],
  renewToken: (stage) => serverOf(stage).renewToken(),
  whileDown: 'kept',
  handsOf,
};
