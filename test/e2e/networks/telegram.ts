import type { Fault } from '../../platforms/telegram/faults.ts';
import type { Stage } from '../stage.ts';
import type { Hands, Network, SendFault } from './network.ts';
import { nested, tooMany } from './network.ts';

const refusal = (code: number, description: string, retryAfter?: number): Fault => ({
  ...{ kind: 'refuse', code, description },
  ...(retryAfter !== undefined && { parameters: { retry_after: retryAfter } }),
});

function onSend(fault: Fault): SendFault['arm'] {
  return ({ telegram }) => telegram.fault(fault, { method: 'sendMessage' });
}

/** Telegram can't recognize a repeated send. */
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
    arm: onSend({ kind: 'slow', ms: 600_000 }),
    ...{ fate: 'unknown', stands: 1, calls: 1 },
  },
  {
    what: 'stands behind a proxy that answers 502',
    arm: onSend({ kind: 'page', code: 502 }),
    ...{ fate: 'unknown', stands: 0, calls: 1 },
  },
  {
    what: 'asks to wait with 429',
    arm: onSend(refusal(429, 'Too Many Requests', 2)),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
  {
    what: 'asks to wait with 429 three times in a row',
    arm: ({ telegram }) =>
      telegram.fault(refusal(429, 'Too Many Requests', 1), { method: 'sendMessage', times: 3 }),
    ...{ fate: 'sent', stands: 1, calls: 4 },
  },
  {
    what: 'says that the person has blocked the bot',
    arm: onSend(refusal(403, 'Forbidden: bot was blocked by the user')),
    ...{ fate: 'failed', stands: 0, calls: 1 },
  },
  {
    what: 'answers 500',
    arm: onSend(refusal(500, 'Internal Server Error')),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
  {
    // It is retried half a minute later.
    what: 'refuses the token for one call',
    isInLongRunsOnly: true,
    arm: onSend(refusal(401, 'Unauthorized')),
    ...{ fate: 'sent', stands: 1, calls: 2 },
  },
];

const poison: readonly (readonly [number, Record<string, unknown>])[] = [
  [500_000_001, { message: { message_id: 'seven', chat: 'nowhere', secret: 'kept-1' } }],
  [500_000_002, { note: 'kept-2', message: nested(800) }],
  [500_000_003, { edited_message: null, note: 'kept-3' }],
  [500_000_004, { message_reaction: { chat: { id: {} }, note: 'kept-4' } }],
  [500_000_005, { callback_query: { id: 7, from: [], note: 'kept-5' } }],
  [500_000_006, { message: { note: 'kept-7', text: 'x'.repeat(20_000_000) } }],
  [500_000_007, { message: { note: 'kept-8', photo: tooMany } }],
];

const handsOf: Network['handsOf'] = ({ telegram }): Hands => ({
  callsWith: (text) => telegram.sent.filter(({ params }) => params.text === text).length,
  refuseSignsOfLife: () => {
    const tooMany = refusal(429, 'Too Many Requests: retry after 60', 60);
    telegram.fault(tooMany, { method: 'sendMessageDraft', times: 100 });
    telegram.fault({ kind: 'page', code: 502 }, { method: 'sendChatAction', times: 100 });
    return () => telegram.calls.filter(({ method }) => method === 'sendMessageDraft').length;
  },
  sendsLostFile: (id, text) => {
    const bytes = Buffer.from('x');
    const document = telegram.world.addFile({ name: 'plan.pdf', mimeType: 'application/pdf', bytes });
    telegram.fault(refusal(400, 'Bad Request: file is too big'), { method: 'getFile' });
    telegram.userSends({ from: { id, is_bot: false, first_name: 'Ada' }, text, document });
  },
  inDisorder: (act) => {
    telegram.updates.arrangeNext((updates) => [...updates, ...updates].reverse());
    act();
  },
  redeliver: (count) => telegram.updates.redeliver(count),
  sendsPoison: async () => {
    for (const [updateId, body] of poison) telegram.updates.pushRaw({ update_id: updateId, ...body });
    telegram.updates.pushRaw({ note: 'kept-6' } as never);
    return [1, 2, 3, 4, 5, 6, 7, 8].map((mark) => `kept-${mark}`);
  },
});

/** Every connection is reset, polls included. */
async function blink({ telegram }: Stage): Promise<void> {
  await telegram.goAway();
  await telegram.comeBack();
}

export const telegramNetwork: Network = {
  ...{ name: 'Telegram', channel: 'telegram', part: 'telegram' },
  outages: [
    {
      what: 'is away',
      shown: /ECONNREFUSED/,
      begin: ({ telegram }) => telegram.goAway(),
      end: ({ telegram }) => telegram.comeBack(),
    },
  ],
  sendFaults,
  cuts: [blink, blink],
  renewToken: ({ telegram }) => telegram.renewToken(),
  whileDown: 'kept',
  handsOf,
};
