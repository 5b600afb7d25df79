import { platformRef } from '../sessions/identities.ts';
import { fillText } from '../texts/chat-texts.ts';
import { anyone, chatCommand, noWords } from './chat-command.ts';

const authorityTexts = { owner: 'whoIsOwner', member: 'whoIsMember', guest: 'whoIsGuest' } as const;

export const whoami = chatCommand({
  name: 'whoami',
  menu: 'whoamiMenu',
  parse: noWords('whoami'),
  right: anyone,
  load: (_, { envelope, authority, lane }) => ({
    ref: platformRef(envelope.route.channel, envelope.sender.id),
    authority,
    isGroupAdmin: envelope.chat.kind === 'group' && envelope.sender.isAdmin === true,
    agent: lane.agentId,
    // The key gives access to everything said under it.
    session: authority === 'owner' ? lane.key : undefined,
  }),
  apply: async (_tx, _scene, facts) => facts,
  say: ({ isGroupAdmin, session, ...values }, texts) =>
    [
      fillText(isGroupAdmin ? texts.whoamiAdmin : texts.whoami, {
        ...values,
        authority: texts[authorityTexts[values.authority]],
      }),
      fillText(texts.whoamiAgent, values),
      ...(session === undefined ? [] : [fillText(texts.whoamiSession, { session })]),
    ].join('\n'),
});
