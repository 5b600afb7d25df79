/** Answers somebody who opens the chat or a deep link. They have typed nothing, so a link's code alone does nothing. */

import { lockPairing, showRequest } from '../store/access/pairing.ts';
import { personLabel } from '../store/access/sender-roles.ts';
import { fillText } from '../texts/chat-texts.ts';
import { anyone, chatCommand } from './chat-command.ts';
import { link } from './link.ts';
import { hashPairingCode, readOneTimeCode } from './one-time-code.ts';

const linkPrefix = 'link_';

/** The command that opens the chat. */
export const start = chatCommand({
  name: 'start',
  usage: '[code]',
  menu: 'startMenu',
  mayHaveCode: true,
  parse: (payload) => {
    const code = payload.startsWith(linkPrefix)
      ? readOneTimeCode(payload.slice(linkPrefix.length))
      : undefined;
    return code === undefined ? { payload } : link.orderOf({ kind: 'join', code });
  },
  right: anyone,
  load: ({ agentName }, { envelope, authority, lane }, { payload }) => ({
    agent: agentName(lane.agentId),
    code: envelope.chat.kind === 'dm' ? readOneTimeCode(payload) : undefined,
    isOwner: authority === 'owner',
  }),
  lock: async (tx, place, input) => {
    if (input.code && input.isOwner) await lockPairing(tx, place, { of: requestOf(input.code) });
    return input;
  },
  apply: async (tx, _, { agent, code, isOwner }) => {
    const shown = code && isOwner ? await showRequest(tx, { of: requestOf(code) }) : undefined;
    return { agent, code, shown };
  },
  say: ({ agent, code, shown }, texts) => {
    const greeting = fillText(texts.greeting, { agent });
    if (code === undefined) return greeting;
    if (shown?.kind === 'limited') return texts.pairingLimited;
    if (shown?.kind === 'asks') return fillText(texts.pairingAsked, { who: personLabel(shown), code });
    return `${greeting}\n${fillText(texts.startCodeHint, { code })}`;
  },
});

function requestOf(code: string) {
  return { codeHash: hashPairingCode(code) };
}
