import type { Fault } from '../../platforms/signal/faults.ts';
import type { SignalServer } from '../../platforms/signal/server.ts';
import { signalOf } from '../signal-side.ts';
import type { Stage } from '../stage.ts';
import { until } from '../until.ts';
import { type Hands, type Network, nested, type SendFault, tooMany } from './network.ts';

const send = { path: '/v2/send' } as const;

function onSend(fault: Fault): SendFault['arm'] {
  return (stage) => signalOf(stage).server.fault(fault, send);
}

/** signal-cli-rest-api can't recognize a repeated send, and a rate limit may come although the message arrived. */
const sendFaults: readonly SendFault[] = [
  {
    what: 'takes an answer and is cut before it says so',
    arm: onSend({ kind: 'drop-answer' }),
    ...{ fate: 'unknown', stands: 1, calls: 1 },
  },
  {
    what: 'is cut before it takes an answer',
    arm: onSend({ kind: 'cut' }),
    ...{ fate: 'unknown', stands: 0, calls: 1 },
  },
  {
    what: 'takes an answer and says so 3 s later',
    arm: onSend({ kind: 'slow', ms: 3000 }),
    ...{ fate: 'sent', stands: 1, calls: 1 },
  },
  {
    what: 'takes an answer and never says so',
    arm: onSend({ kind: 'hang', isApplied: true }),
    ...{ fate: 'unknown', stands: 1, calls: 1 },
  },
  {
    what: 'stands behind a proxy that answers 502',
    arm: onSend({ kind: 'page', status: 502 }),
    ...{ fate: 'unknown', stands: 0, calls: 1 },
  },
  {
    what: 'answers 429 without a challenge and delivers all the same',
    arm: onSend({ kind: 'rate-limit', tokens: [''], isDelivered: true }),
    ...{ fate: 'unknown', stands: 1, calls: 1 },
  },
  {
    what: 'says that the person has left Signal',
    arm: onSend({ kind: 'refuse', status: 400, error: 'Unregistered user' }),
    ...{ fate: 'failed', stands: 0, calls: 1 },
  },
  {
    what: 'has no network of its own for a moment',
    arm: onSend({ kind: 'refuse', status: 400, error: 'Failed to send message' }),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
];

const captcha = {
  what: 'asks for a captcha, which somebody solves',
  arm: (stage: Stage) => signalOf(stage).server.challenge('token-1'),
  lift: (stage: Stage) => solveCaptcha(signalOf(stage).server),
};

// The wait is two minutes, and a test can't shorten it.
const namedCaptcha: SendFault = { ...captcha, isInLongRunsOnly: true, fate: 'sent', stands: 1, calls: 2 };
/** Without a token it looks like a rate limit, and the message may have been delivered. */
const namelessCaptcha: SendFault = { ...captcha, fate: 'unknown', stands: 0, calls: 1 };

async function solveCaptcha({ url, number }: SignalServer): Promise<void> {
  const answer = await fetch(`${url}/v1/accounts/${encodeURIComponent(number)}/rate-limit-challenge`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ challenge_token: 'token-1', captcha: 'signalcaptcha://solved' }),
  });
  if (answer.status !== 204) throw new Error(`the captcha was not taken: ${await answer.text()}`);
}

/** `deliver`: how something that isn't a notification arrives. */
function handsOf(deliver: (server: SignalServer, raw: string) => Promise<void>): Network['handsOf'] {
  return (stage): Hands => {
    const { server, user } = signalOf(stage);
    return {
      callsWith: (text) =>
        server.calls.filter(
          ({ path, body }) => path === '/v2/send' && (body as { message?: unknown }).message === text,
        ).length,
      refuseSignsOfLife: () => {
        server.fault({ kind: 'page', status: 502 }, { path: '/v1/typing-indicator', times: 100 });
        server.fault({ kind: 'refuse', status: 400, error: 'no' }, { path: '/v1/receipts', times: 100 });
        return () => 0;
      },
      sendsLostFile: (id, text) => {
        const bytes = Buffer.from('x');
        const file = { fileName: 'plan.pdf', contentType: 'application/pdf', bytes };
        const attachments = [server.world.addAttachment(file)];
        // However often it is requested.
        const gone = { kind: 'refuse', status: 404, error: 'No attachment with that name found' } as const;
        server.fault(gone, { method: 'GET', path: '/v1/attachments', times: 3 });
        server.people.writes({ from: user(id), text, attachments });
      },
      inDisorder: (act) => server.arranged(act, (arrived) => [...arrived, ...arrived].reverse()),
      redeliver: (count) => server.redeliver(count),
      sendsPoison: async () => {
        const { number: account } = server;
        const from = user(666);
        const envelope = { sourceUuid: from.uuid, sourceDevice: 1, timestamp: Date.now() };
        server.people.sendsUnreadable(from, { message: 'kept-1', type: 'UntrustedIdentityException' });
        server.emit({ account, envelope: { ...envelope, timestamp: 'seven', note: 'kept-2' } });
        server.emit({ account, envelope: { note: 'kept-3', ...envelope, dataMessage: nested(800) } });
        server.emit({ account, envelope: { ...envelope, dataMessage: { groupInfo: 7, note: 'kept-4' } } });
        await deliver(server, '{"envelope": "kept-5');
        await deliver(server, '["kept-6"]');
        server.emit({
          account,
          envelope: { note: 'kept-7', ...envelope, dataMessage: { mentions: tooMany } },
        });
        return [1, 2, 3, 4, 5, 6, 7].map((mark) => `kept-${mark}`);
      },
    };
  };
}

/** A post that doesn't come from Signal at all, by somebody who knows the secret. */
async function post({ webhookUrl = '' }: SignalServer, body: string): Promise<void> {
  const { status } = await fetch(webhookUrl, { method: 'POST', body });
  if (status !== 200) throw new Error(`the webhook answered ${status}`);
}

/** Every connection is reset; people's messages wait until it is over. */
async function blink(stage: Stage): Promise<void> {
  await signalOf(stage).server.goAway();
  await signalOf(stage).server.comeBack();
}

const common = {
  name: 'Signal',
  channel: 'signal',
  cuts: [blink, blink],
} as const;

/** json-rpc mode: the webhook, with the socket next to it. */
export const signalNetwork: Network = {
  ...common,
  part: 'signal',
  sendFaults: [...sendFaults, namedCaptcha],
  outages: [
    {
      what: 'is away with its whole server',
      shown: /ECONNREFUSED/,
      begin: (stage) => signalOf(stage).server.goAway(),
      end: (stage) => signalOf(stage).server.comeBack(),
    },
    {
      what: 'has lost its signal-cli',
      shown: /get list of accounts/,
      begin: (stage) => signalOf(stage).server.stopDaemon('burst'),
      end: (stage) => signalOf(stage).server.startDaemon(),
    },
  ],
  whileDown: 'lost',
  handsOf: handsOf(post),
};

/** normal mode: messages wait on Signal's server until they are fetched. */
export const polledSignalNetwork: Network = {
  ...common,
  name: 'polled Signal',
  part: 'polled-signal',
  sendFaults: [...sendFaults, namelessCaptcha],
  outages: [
    {
      what: 'is away with its whole server',
      shown: /ECONNREFUSED/,
      begin: (stage) => signalOf(stage).server.goAway(),
      end: (stage) => signalOf(stage).server.comeBack(),
    },
  ],
  whileDown: 'kept',
  // Whatever a poll fetches after its caller has died is lost with the response, so unread messages are lost too.
  untilLeft: async (stage) => {
    await blink(stage);
    await until(() => !signalOf(stage).server.mailbox().isBusy, { what: 'the end of the poll' });
  },
  handsOf: handsOf(async (server, raw) => server.emit({ account: server.number, envelope: { raw } })),
};
