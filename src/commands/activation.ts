/** Sets when the agent answers in a group. */
import type { InboundEnvelope } from '#contracts/envelope.ts';
import { platformRef } from '../sessions/identities.ts';
import { dismissGroup } from '../store/access/admit.ts';
import { setActivation } from '../store/delivery/part.ts';
import type { TextKey } from '../texts/chat-texts.ts';
import { adminsInGroups, type CommandPolicy, chatCommand } from './chat-command.ts';

/** `off`: the group, which an owner had admitted, is no longer answered. `usage`: the words name no wish. */
type Wish = 'mention' | 'always' | 'off' | 'usage';
/** The configuration admits every group, or names this one; no command changes that. */
type Kept = 'open' | 'not-here';
type Said = Wish | Kept | 'in-dm';

const keys = {
  mention: 'activationMention',
  always: 'activationAlways',
  off: 'activationOff',
  open: 'activationOpen',
  'not-here': 'activationNotHere',
  usage: 'activationUsage',
  'in-dm': 'activationInDm',
} as const satisfies Record<Said, TextKey>;

type Input = { readonly wish: Wish | 'in-dm'; readonly keptBy?: Kept };

export const activation = chatCommand<{ readonly wish: Wish }, Input, Said>({
  name: 'activation',
  usage: 'mention|always|off',
  menu: 'activationMenu',
  parse: (words) => {
    const wish = words.toLowerCase();
    const isKnown = wish === 'mention' || wish === 'always' || wish === 'off';
    return { wish: isKnown ? wish : 'usage' };
  },
  right: adminsInGroups,
  load: ({ policy }, { envelope }, { wish }) => {
    if (envelope.chat.kind === 'dm') return { wish: 'in-dm' };
    const keptBy = findKept(policy.access, envelope);
    return { wish, ...(keptBy && { keptBy }) };
  },
  apply: async (tx, { conversationKey }, { wish, keptBy }) => {
    if (wish === 'mention' || wish === 'always') await setActivation(tx, conversationKey, wish);
    if (wish !== 'off') return wish;
    const wasAdmitted = await dismissGroup(tx, conversationKey);
    return keptBy ?? (wasAdmitted ? 'off' : 'not-here');
  },
  say: (said, texts) => texts[keys[said]],
});

function findKept(access: CommandPolicy['access'], { route, chat }: InboundEnvelope): Kept | undefined {
  if (access.groupPolicy === 'open') return 'open';
  const places = [route.conversation, ...(chat.parent === undefined ? [] : [chat.parent])];
  const isNamed = places.some((place) => access.allowGroups.has(platformRef(route.channel, place)));
  return isNamed ? 'not-here' : undefined;
}
