/** Threat 11: what a model writes, as each network's server reads it. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { accountId, channelId, conversationId, partKey } from '#contracts/ids.ts';
import type { Outbound } from '#contracts/outbound.ts';
import { capabilities as discord } from '../../channels/discord/capabilities.ts';
import { toCall as toDiscordCall } from '../../channels/discord/outbound.ts';
import { capabilities as telegram } from '../../channels/telegram/capabilities.ts';
import { toCall as toTelegramCall } from '../../channels/telegram/outbound.ts';
import { findMentions, nobody } from '../platforms/discord/mentions.ts';
import { readMessageBody } from '../platforms/discord/message-body.ts';
import { readSentText } from '../platforms/telegram/entities.ts';
import { aReply, shapeReply } from '../replies/reply-builders.ts';
import { hostileReply } from '../replies/reply-generators.ts';
import { isLong } from '../support/long-run.ts';

const numRuns = isLong ? 5_000 : 100;

/** Everybody is there to be pinged, and the bot may ping them all. */
const crowd = { isUser: () => true, isRole: () => true, mayPingEveryone: true, repliedUser: '41' };

function sends(text: string, channel: string, { text: limits }: typeof telegram): readonly Outbound[] {
  const plan = shapeReply(aReply({ text: `Hello ${text}`, capabilities: { text: limits, canReact: true } }));
  if (plan.kind !== 'send') throw new Error('nothing is sent');
  const route = {
    channel: channelId(channel),
    account: accountId('1100'),
    conversation: conversationId('1200'),
  };
  return plan.parts.map(({ content }, n) => ({ key: partKey(`run:${n}:t`), route, content }));
}

it('sends Discord no hostile reply that pings anybody, shows a preview or is refused', () => {
  fc.assert(
    fc.property(hostileReply, (text) => {
      for (const outbound of sends(text, 'discord', discord)) {
        const call = toDiscordCall(outbound);
        if (call.method !== 'send') throw new Error(`not sent: ${JSON.stringify(call)}`);
        const draft = readMessageBody({ ...call.body }, []);
        expect(findMentions(draft.text ?? '', draft.allowed, crowd)).toEqual(nobody);
        expect((draft.flags ?? 0) & 4).toBe(4);
      }
    }),
    { numRuns },
  );
});

it('sends Telegram no hostile reply that links to a person, shows a preview or is refused', () => {
  fc.assert(
    fc.property(hostileReply, (text) => {
      for (const outbound of sends(text, 'telegram', telegram)) {
        const call = toTelegramCall(outbound);
        if (call.method !== 'sendMessage') throw new Error(`not sent: ${JSON.stringify(call)}`);
        const { entities } = readSentText(call.payload.text, call.payload.entities, 4096);
        expect(entities.filter(({ type }) => type === 'text_mention')).toEqual([]);
        for (const { url = 'https:' } of entities) expect(url).toMatch(/^(?:https?|mailto|tel):/);
        expect(call.payload.link_preview_options).toEqual({ is_disabled: true });
      }
    }),
    { numRuns },
  );
});
