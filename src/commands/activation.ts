/** In a group: when the agent answers. */
import { dismissGroup } from '../store/access/admit-group.ts';
import { setActivation } from '../store/delivery/insert-part.ts';
import type { NoticeKey } from '../texts/notices.ts';
import { adminsInGroups, chatCommand } from './chat-command.ts';

/** `off`: an owner had let the group in, and it is answered no more. `usage`: the words name nothing. */
type Wish = 'mention' | 'always' | 'off' | 'usage';
type Said = Wish | 'in-dm' | 'not-here';

const texts = {
  mention: 'activationMention',
  always: 'activationAlways',
  off: 'activationOff',
  'not-here': 'activationNotHere',
  usage: 'activationUsage',
  'in-dm': 'activationInDm',
} as const satisfies Record<Said, NoticeKey>;

export const activation = chatCommand<{ readonly wish: Wish }, { readonly wish: Wish | 'in-dm' }, Said>({
  name: 'activation',
  usage: 'mention|always|off',
  menu: 'activationMenu',
  parse: (words) => {
    const wish = words.toLowerCase();
    const isKnown = wish === 'mention' || wish === 'always' || wish === 'off';
    return { wish: isKnown ? wish : 'usage' };
  },
  right: adminsInGroups,
  load: (_, { envelope }, { wish }) => ({ wish: envelope.chat.kind === 'dm' ? 'in-dm' : wish }),
  apply: async (tx, { conversationKey }, { wish }) => {
    if (wish === 'mention' || wish === 'always') await setActivation(tx, conversationKey, wish);
    if (wish === 'off') return (await dismissGroup(tx, conversationKey)) ? 'off' : 'not-here';
    return wish;
  },
  say: (said, notices) => notices[texts[said]],
});
